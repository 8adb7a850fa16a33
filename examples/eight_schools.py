"""Eight schools: centred against non-centred, with a HalfNormal(5) and with the usual HalfCauchy(5) scale."""

from __future__ import annotations

from card import arguments, run
from models import eight_schools

if __name__ == "__main__":
    options = arguments(__doc__)
    for has_heavy_tail in (False, True):
        for is_centred in (False, True):
            form = "centred" if is_centred else "non-centred"
            scale = "HalfCauchy" if has_heavy_tail else "HalfNormal"
            model = eight_schools(is_centred=is_centred, has_heavy_tail=has_heavy_tail)
            run(f"eight schools {form} {scale}", model, options)
