"""The paper's claims: each has a verdict, and never one that the runs do not allow."""

from bootdqn.reports.atari import evaluations_of
from bootdqn.reports.report_data import load_report_data
from reference.run_directories import GAMES, write_atari, write_deep_sea, write_study
from reference.verdicts import Verdicts
from reproduction.claims import CLAIMS, COLOURS, claims_table
from reproduction.evidence import CONTRADICTED, MIXED, OPEN, SUPPORTED, Evidence


def evidence_below(root):
    study = load_report_data(root)
    return Evidence.among(study.counted("deep-sea"), evaluations_of(study))


def test_a_claim_about_atari_stays_open_on_less_than_the_papers_budget(tmp_path):
    write_study(tmp_path / "small", seeds=3, evaluations=10)
    write_study(tmp_path / "large", seeds=3, evaluations=10, every=20_000_000)
    for size, every in (("small", 1_000_000), ("large", 20_000_000)):
        for game in GAMES:
            for seed in range(3):
                write_atari(tmp_path / size / game / f"ids/{seed}", game, "ids", seed, scores=[1.0] * 10, every=every)
    for size, expected in (("small", OPEN), ("large", SUPPORTED)):
        row = Verdicts(evidence_below(tmp_path / size))["EVOI has the best maximal score in four of six games."]
        assert row["here"] == expected
        assert "EVOI is best in 6 of 6 games" in row["what these runs say"]
        assert ("10M frames, the paper 3 of 200M" in row["what these runs say"]) == (size == "small")


def test_every_claim_has_a_verdict_whatever_is_there(tmp_path):
    write_study(tmp_path, seeds=2, evaluations=12)
    for strategy, solved in (("greedy", None), ("ucb", None), ("gain", 300), ("evoi:reduce=sum", 100)):
        for size in (5, 10):
            for seed in range(4):
                path = tmp_path / f"deep/{size}/{strategy.replace(':', '-')}/{seed}"
                write_deep_sea(path, strategy, size, seed, 1000, None if solved is None else solved + seed)
    evidence = evidence_below(tmp_path)
    found, table = Verdicts(evidence), claims_table(evidence)
    assert len(found) >= 15
    assert {row["here"] for row in found.values()} <= {SUPPORTED, CONTRADICTED, MIXED, OPEN}
    assert found["EVOI (sum) beats the baselines on DeepSea."]["here"] == SUPPORTED
    assert table.columns == ("verdict", "the paper says", "its own numbers", "what these runs say")
    for claim, (verdict, *others) in zip(CLAIMS, table.rows, strict=True):
        status, reason = found[claim.text].values()
        assert verdict == f"{COLOURS[status]} {status}"
        assert others == [claim.text, claim.remark, reason]
