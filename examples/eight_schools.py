"""Eight schools, non-centred and centred, with a HalfNormal(5) scale; with --all also with the usual HalfCauchy(5)."""

from __future__ import annotations

from card import parser, read, run
from models import eight_schools

if __name__ == "__main__":
    reader = parser(__doc__)
    reader.add_argument("--all", action="store_true", help="the heavy-tailed scale, too")
    options = read(reader)
    for has_heavy_tail in (False, True) if options.all else (False,):
        for is_centred in (False, True):
            form = "centred" if is_centred else "non-centred"
            scale = "HalfCauchy" if has_heavy_tail else "HalfNormal"
            model = eight_schools(is_centred=is_centred, has_heavy_tail=has_heavy_tail)
            run(f"eight schools {form} {scale}", model, options)
