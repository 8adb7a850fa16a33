"""The analysis of a Stan program: infer its outcomes, split it, derive its simulator, write the program to compile."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

from bread.backends.stan.analysis.changes import find_changes
from bread.backends.stan.analysis.data import check_data, check_program, whole_numbers
from bread.backends.stan.analysis.design import Design, held_design
from bread.backends.stan.analysis.latents import latents
from bread.backends.stan.analysis.observed import check_observed, infer_observed
from bread.backends.stan.analysis.program import Contribution, Parameter, Program
from bread.backends.stan.analysis.spelling import not_spelled, spelled_out
from bread.backends.stan.language.dataflow import Dataflow, analyse_dataflow
from bread.backends.stan.language.messages import check_text, stanc_reason
from bread.backends.stan.language.refusals import Refusal, RefusedError, quote
from bread.backends.stan.language.scopes import Scopes, Variable, resolve
from bread.backends.stan.language.source import Source, Stanc
from bread.backends.stan.language.syntax import Node, nodes, parse
from bread.backends.stan.simulator.assembly import View, simulation_view
from bread.backends.stan.simulator.derivation import ONLY_PARAMETERS, Derivation, Simulator
from bread.backends.stan.simulator.forms.gaussian import laws_of_vectors
from bread.backends.stan.simulator.forms.induced import laws_of_cutpoints
from bread.backends.stan.simulator.outcome_densities import functions_with_density
from bread.backends.stan.simulator.reader import Reader
from bread.backends.stan.simulator.requirements import PRIOR_ONLY
from bread.backends.stan.split import rewriting
from bread.backends.stan.split.rewriting import Edit
from bread.backends.stan.split.split import Classified, Splitter
from bread.errors import InvalidArgumentError, UnsupportedModelError

_MOST_FLAT = 10  # rounds in which parameters without a proper prior are found, several in one


def analyse(
    source: Source,
    *,
    observed: Sequence[str] | str | None,
    data_names: Sequence[str] | None = None,
    likelihood_lines: Sequence[int] | None = None,
    held: Sequence[str] | None = None,
    data: Mapping[str, Any] | None = None,
    stanc: Stanc,
) -> Program:
    """Read a program, split it into prior and likelihood, and derive its simulator.

    Parameters
    ----------
    source : Source
    observed : sequence of str, str or None
        Outcomes; None infers them.
    data_names : sequence of str or None
        Names in the user's data, to name what is missing; None does not look.
    likelihood_lines : sequence of int or None
        Lines whose contributions are the likelihood, by the user's own word.
    held : sequence of str or None
        Parameters that may be held whenever the program is simulated, so that their priors need not be proper; none
        of them stands for the hyperparameters. None: every prior must be.
    data : mapping or None
        The user's data. The whole numbers among them, outcomes apart, count with their values where it is asked which
        elements a statement draws: ``x[1]`` is all of ``x`` where its size is 1.
    stanc : Stanc
        Stan's compiler front end.

    Raises
    ------
    StanProgramError
        stanc rejects the program; the message is its own, on one line.
    UnsupportedModelError
        The outcomes cannot be inferred.
    InvalidArgumentError
        ``observed``, ``likelihood_lines`` or ``data_names`` do not fit the program.
    """
    check_text(source, stanc)
    blocks = parse(source)
    scopes = resolve(blocks)
    flow = analyse_dataflow(blocks, scopes)
    check_program(source, scopes)
    check_data(source, scopes, data_names)
    names = (observed,) if isinstance(observed, str) else observed

    def analysed(text: Source, flow: Dataflow, blocks: dict[str, Node]) -> Program:
        flow.values = data or {}
        outcomes = infer_observed(flow, text) if names is None else check_observed(names, flow, text)
        flow.integers = whole_numbers(flow.scopes, outcomes, data or {})
        reader = Reader(flow, text, Splitter(flow, text, outcomes), frozenset(outcomes))
        flow.changed, flow.jacobians = find_changes(flow, outcomes, reader.variate)
        analysis = _Analysis(text, blocks, flow.scopes, flow, outcomes, likelihood_lines, held, stanc)
        return replace(analysis.program(names is None), written=source)

    def read(text: Source, flow: Dataflow, blocks: dict[str, Node]) -> Program:
        program: Program | None = None
        for kept in dict.fromkeys(((), laws_of_cutpoints(flow), laws_of_vectors(flow))):
            spelled = spelled_out(text, flow, blocks, stanc, kept)
            if spelled is None:
                continue
            inner = parse(spelled)
            with suppress(UnsupportedModelError, InvalidArgumentError):
                found = analysed(spelled, analyse_dataflow(inner, resolve(inner)), inner)
                if found.is_automatic:
                    return found
                program = program or found
        try:
            own = analysed(text, flow, blocks)
        except UnsupportedModelError:
            reason = not_spelled(flow, text, names or (), names is not None)
            if reason is not None:
                raise UnsupportedModelError(str(reason)) from None
            if program is None:
                raise
            return program
        if own.is_automatic:
            return own
        reason = not_spelled(flow, text, own.observed, names is not None)
        if reason is not None and own.split_refusal is None:
            return replace(own, simulator_refusal=reason)
        return _in_own_words(own, program)

    program = read(source, flow, blocks)
    if program.is_automatic:
        return program
    outcomes = check_observed(program.observed, flow, source)
    design = held_design(source, blocks, flow, outcomes, stanc)
    if design is None:
        return program
    inner = parse(design.source)
    return _designed(program, read(design.source, analyse_dataflow(inner, resolve(inner)), inner), design)


def _designed(program: Program, held: Program, design: Design) -> Program:
    """Return a program whose sizes are held, if that is what it lacked."""
    refusal = held.split_refusal or held.simulator_refusal
    if held.observed != program.observed or (refusal is not None and "bread_" in refusal.construct):
        return program
    return replace(held, copies=dict(design.copies), notes=(*held.notes, design.note))


def _in_own_words(program: Program, spelled: Program | None) -> Program:
    """Return a program as it stands, refused for what is left when it is spelled out, if that is the user's text."""
    left = None if spelled is None or spelled.split_refusal is not None else spelled.simulator_refusal
    if left is None or program.split_refusal is not None:
        return program
    if left.construct.removesuffix("...") not in " ".join(program.source.code.split()):
        return program
    return replace(program, simulator_refusal=left)


class _Analysis:
    def __init__(
        self,
        source: Source,
        blocks: dict[str, Node],
        scopes: Scopes,
        flow: Dataflow,
        outcomes: Sequence[Variable],
        lines: Sequence[int] | None,
        held: Sequence[str] | None,
        stanc: Stanc,
    ) -> None:
        self._source = source
        self._blocks = blocks
        self._scopes = scopes
        self._flow = flow
        self._outcomes = tuple(outcomes)
        self._lines = lines
        self._held = held
        self._stanc = stanc
        self._splitter = Splitter(flow, source, outcomes)

    def program(self, inferred: bool) -> Program:
        """Put the program together."""
        classified, split_refusal = self._split()
        simulator, simulator_refusal = self._simulate(classified, split_refusal)
        edits, refused = self._edits(classified, simulator)
        split_refusal = split_refusal or refused
        tempered = rewriting.apply_edits(self._source.text, edits)
        output = self._stanc(tempered, "--allow-undefined")
        if output.returncode != 0 and simulator is not None:
            simulator_refusal = self._types_refusal(output.stderr)
            simulator = None
            edits, refused = self._edits(classified, None)
            split_refusal = split_refusal or refused
            tempered = rewriting.apply_edits(self._source.text, edits)
            output = self._stanc(tempered, "--allow-undefined")
        if output.returncode != 0:
            split_refusal = split_refusal or self._types_refusal(output.stderr)
            edits = self._plain_edits()
            tempered = rewriting.apply_edits(self._source.text, edits)
        source = self._source
        return Program(
            source=source,
            written=source,
            observed=tuple(v.name for v in self._outcomes),
            observed_inferred=inferred,
            parameters=tuple(self._parameter(v) for v in self._scopes.of_kind("parameter")),
            hyperparameters=self._hyperparameters(simulator),
            fixable=simulator.fixable if simulator is not None else (),
            contributions=tuple(Contribution(quote(source, c.node), c.contribution.line, c.part) for c in classified),
            tempered=tempered,
            switches=_switches(simulator),
            edged_prior=simulator.edged_prior if simulator is not None else (),
            edged_likelihood=simulator.edged_likelihood if simulator is not None else (),
            fixed_data=self._fixed_data(),
            split_refusal=split_refusal,
            simulator_refusal=simulator_refusal,
            notes=self._notes(simulator),
            held=simulator.held if simulator is not None else (),
            latents=simulator.latents if simulator is not None else (),
            drawn=simulator.drawn if simulator is not None else (),
            edits=tuple(edits),
            outcome_functions=functions_with_density(self._flow, self._source, self._splitter, self._outcomes),
        )

    def _split(self) -> tuple[list[Classified], Refusal | None]:
        try:
            if self._lines is None:
                return self._splitter.split(), None
            return self._splitter.split_by_lines(self._lines), None
        except RefusedError as error:
            return [], error.refusal

    def _simulate(
        self, classified: list[Classified], split_refusal: Refusal | None
    ) -> tuple[Simulator | None, Refusal | None]:
        """Derive the simulator; a program that cannot be split may still be simulated."""
        if split_refusal is not None:
            classified = [Classified(c, "prior") for c in self._flow.contributions]
        try:
            return self._derivation().derive(self._seen(classified)), None
        except RefusedError as error:
            refusal = error.refusal
        if self._held is None or split_refusal is not None:
            return None, refusal
        held = tuple(self._held or self._hyperparameters(None))
        for _ in range(1 if self._held else _MOST_FLAT):  # a scale of the outcomes may have a flat prior, too
            try:
                return self._derivation().derive(self._seen(classified), held), None
            except RefusedError as error:
                new = tuple(name for name in error.refusal.flat if name not in held)
                if not new:
                    break
                held += new
        return None, refusal

    @cached_property
    def _view(self) -> View:
        return simulation_view(self._blocks, self._flow)

    def _derivation(self) -> Derivation:
        view = self._view
        names = [v.name for v in self._outcomes]
        outcomes = [v for v in view.scopes.of_kind("data") if v.name in names]
        splitter = Splitter(view.flow, self._source, outcomes) if view.assemblies else self._splitter
        return Derivation(self._blocks, view.flow, self._source, splitter, outcomes, view.assemblies)

    def _seen(self, classified: list[Classified]) -> list[Classified]:
        """Return contributions as the view of the simulator has them."""
        twins = {id(contribution.node): contribution for contribution in self._view.flow.contributions}
        return [replace(one, contribution=twins[id(one.node)]) for one in classified]

    def _edits(self, classified: list[Classified], simulator: Simulator | None) -> tuple[list[Edit], Refusal | None]:
        refusal = None
        edits = self._plain_edits() if simulator is None else self._simulator_edits(simulator)
        if classified:
            try:
                edits = edits + rewriting.temper_edits(classified, self._scopes, self._source)
            except RefusedError as error:
                refusal = error.refusal
        return edits, refusal

    def _plain_edits(self) -> list[Edit]:
        text = self._source.text
        return [
            rewriting.functions_edit(self._blocks, self._source.code, rewriting.DECLARATION),
            *rewriting.generated_edit(self._blocks, text, ""),
        ]

    def _simulator_edits(self, simulator: Simulator) -> list[Edit]:
        text = self._source.text
        functions = f"{rewriting.DECLARATION} {simulator.functions}".strip()
        return [
            rewriting.functions_edit(self._blocks, self._source.code, functions),
            *rewriting.last_functions_edit(self._blocks, simulator.last_functions),
            *rewriting.data_edit(self._blocks, simulator.data),
            *rewriting.generated_edit(self._blocks, text, simulator.generated),
            *rewriting.unconstrain_edits(simulator.widened, text, self._source.code),
        ]

    def _types_refusal(self, message: str) -> Refusal:
        words = stanc_reason(message).partition(" Available signatures:")[0]
        reason = re.sub(r"^.*? to (?:line \d+, )?column \d+: ", "", words).rstrip(
            "."
        )  # its places are of the rewritten text
        return Refusal(
            "the rewritten program",
            f"stanc does not accept what bread derived from the program: {reason}.",
            "Pass simulator= or likelihood=, and please report the program.",
            1,
            self._source.origin(1),
        )

    def _parameter(self, variable: Variable) -> Parameter:
        return Parameter(
            variable.name,
            variable.type,
            tuple(quote(self._source, size) for size in variable.dimensions),
            {name: quote(self._source, node) for name, node in variable.bounds.items()},
            variable.line,
        )

    def _hyperparameters(self, simulator: Simulator | None) -> tuple[str, ...]:
        """Return parameters that others depend on, by the simulator, or else by statements free of observed data.

        Where there are none: all but standardised effects (`latents`).
        """
        everything = tuple(v.name for v in self._scopes.of_kind("parameter"))
        if simulator is not None:
            can_be_held = tuple(name for name in simulator.hyperparameters if name in simulator.fixable)
            return simulator.held or can_be_held or self._without_latents(simulator.fixable) or everything
        found: set[str] = set()
        for contribution in self._flow.contributions:
            if contribution.kind != "tilde" or self._splitter.is_observed(contribution.own):
                continue
            variate, *arguments = nodes(contribution.node)
            own = {v.name for v in self._flow.depends(variate) if v.kind == "parameter"}
            if own:
                found |= {v.name for v in self._flow.depends(*arguments) if v.kind == "parameter"} - own
        return tuple(name for name in everything if name in found) or self._without_latents(everything)

    def _without_latents(self, names: tuple[str, ...]) -> tuple[str, ...]:
        found = latents(self._flow, self._blocks)
        return tuple(name for name in names if name not in found) or names

    def _fixed_data(self) -> dict[str, int]:
        flag = self._scopes.named(PRIOR_ONLY, "data")
        controls = {v for c in self._flow.contributions for v in c.control}
        return {PRIOR_ONLY: 0} if flag is not None and flag.type == "int" and flag in controls else {}

    def _notes(self, simulator: Simulator | None) -> tuple[str, ...]:
        notes = list(simulator.notes) if simulator is not None else []
        if "generated_quantities_block" in self._blocks:
            notes.append("The program's generated quantities are not computed.")
        return tuple(notes)


def _switches(simulator: Simulator | None) -> dict[str, int]:
    if simulator is None:
        return {}
    return {ONLY_PARAMETERS: 0, **{f"bread_use_fixed_{name}": 0 for name in simulator.fixable}}
