"""The report: every number from the files, nothing hidden, and a page that a browser opens without a complaint."""

import csv
import errno
import html
import json
import os
import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bootdqn.cli.main import run_command_line
from bootdqn.common.errors import UsageError
from bootdqn.reports.atari import (
    best_scores,
    evaluations_of,
    maximal_scores,
    normalised_scores,
    vote_diversity,
    with_paper_heads,
)
from bootdqn.reports.atari_heads import runtime_table
from bootdqn.reports.conclusions import games_conclusion
from bootdqn.reports.report import write_report
from bootdqn.reports.report_data import load_report_data
from bootdqn.reports.run_table import load_results
from bootdqn.runs.lock import locked
from reference.browser import opened
from reference.run_directories import write_atari, write_deep_sea, write_gym, write_run_dir, write_study
from reference.tables import AtariRun, deep_sea_table, evaluations_table
from reproduction.evidence import Evidence

EVIL = "<script>alert(1)<"
NOTHING = "there is nothing to compare it with."


def rows(table):
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def evaluations_below(root):
    return evaluations_of(load_report_data(root))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report on everything at once: both kinds of runs, and all that can be wrong with one."""
    root = tmp_path_factory.mktemp("everything")
    write_study(root, seeds=2, evaluations=12)
    for strategy, solved in (("greedy", None), ("ucb", None), ("gain", 300), ("evoi:reduce=sum", 100)):
        for size in (5, 10):
            for seed in range(4):
                path = root / f"deep/{size}/{strategy.replace(':', '-')}/{seed}"
                found = None if solved is None else solved + seed
                write_deep_sea(path, strategy, size, seed, 1000, found, bad=[True, False, True] * 5)
    write_deep_sea(root / EVIL, status="failed")
    write_run_dir(root / "killed", {"environment": "deep-sea", "strategy": "gain", "size": 5, "seed": 9})
    write_run_dir(root / "odd", {"environment": "gym", "env_id": "CartPole-v1"}, {"status": "finished"})
    write_run_dir(root / "moon", {"environment": "moon"}, {"status": "finished"})
    write_run_dir(root / "empty", {"environment": "atari", "game": "Hero"}, {"status": "interrupted"})
    (root / "broken").mkdir()
    (root / "broken/config.json").write_text("{")
    write_atari(root / "torn")
    (root / "torn/metrics.jsonl").write_text('{"kind": "evaluation"}\n')
    return write_report(root, root / "report.html")


def test_the_table_of_maximal_scores_is_the_mean_over_seeds_of_the_best_evaluation(tmp_path):
    write_atari(tmp_path / "a", "Hero", "evoi", 0, scores=(1, 9, 3))
    write_atari(tmp_path / "b", "Hero", "evoi", 1, scores=(5, 2, 4, 100), every=1_000_000)
    (row,) = rows(maximal_scores(evaluations_below(tmp_path)))
    assert (row["ours"], row["paper"], row["seeds"]) == ("54.5", "28,539.3", "2")
    assert row["budget"] == "3M"
    assert float(row["ours at equal budget"]) == pytest.approx(((1 + 9 + 3) / 3 + (5 + 2 + 4) / 3) / 2, abs=0.05)


def test_normalised_scores_compare_with_the_paper_on_the_same_games(tmp_path):
    write_atari(tmp_path / "a", "Hero", "greedy", 0, scores=(1027.0,))
    write_atari(tmp_path / "b", "Venture", "greedy", 0, scores=(1187.5,))
    (row,) = rows(normalised_scores(evaluations_below(tmp_path)))
    assert row["mean"] == "50.00"
    assert row["paper, all games"] == "50.67"
    assert row["paper, same games"] == f"{(100 * (21537 - 1027) / (30826.4 - 1027) + 100 * 1473.3 / 1187.5) / 2:.2f}"
    assert row["games"] == "2 of 6"


def test_a_game_that_is_not_the_papers_has_a_score_and_no_normalised_one(tmp_path):
    write_atari(tmp_path / "a", "Pong", "greedy", 0, scores=(-21.0, -20.0))
    evaluations = evaluations_below(tmp_path)
    assert rows(maximal_scores(evaluations))[0]["paper"] == ""
    assert normalised_scores(evaluations) is None


def test_runtime_and_diversity_stand_beside_the_papers(tmp_path):
    for heads in (2, 6):
        write_atari(tmp_path / str(heads), num_heads=heads, scores=(1.0, 2.0), diversity=1.25)
    table = rows(runtime_table(evaluations_below(tmp_path)))
    assert [(row["K"], row["time against the K before"], row["paper's growth"]) for row in table] == [
        ("2", "", ""),
        ("6", "+200 %", "+36 %"),
    ]
    write_atari(tmp_path / "10", num_heads=10, scores=(1.0, 2.0), diversity=1.25)
    (row,) = rows(vote_diversity(with_paper_heads(evaluations_below(tmp_path))))
    assert (row["count variance"], row["paper"]) == ("1.25", "1.43")


def test_runs_that_do_not_count_are_listed_and_not_hidden(report):
    with (report.parent / "report_files/tables/not-counted.csv").open() as file:
        why = {row["run"]: row["why"] for row in csv.DictReader(file)}
    assert why[EVIL] == "failed"
    assert why["killed"] == "stopped"
    assert why["broken"].startswith("unreadable")
    assert why["torn"].startswith("unreadable")
    assert why["empty"] == "interrupted: not evaluated yet"
    assert why["odd"] == "unreadable: KeyError: 'strategy'"
    assert why["moon"] == "the environment 'moon': this report is about deep-sea, atari, minatar, gym, bsuite"


def test_runs_under_way_show_their_progress(tmp_path):
    sea = {"environment": "deep-sea", "strategy": "gain", "size": 5, "seed": 0, "max_episodes": 2000}
    update = {"kind": "update", "step": 7000, "updates": 7000}
    write_run_dir(tmp_path / "sea", sea, None, [{"kind": "episode", "episode": 1200, "step": 6000}, update])
    write_run_dir(tmp_path / "failed", sea, {"status": "failed", "error": "boom"}, [{"kind": "episode", "episode": 1}])
    write_run_dir(tmp_path / "begun", sea, None, [update])
    write_run_dir(tmp_path / "torn", sea, None, [{"kind": "episode", "episode": "many"}])
    lake = {"environment": "gym", "env_id": "FrozenLake-v1", "strategy": "gain", "total_steps": 20_000}
    write_run_dir(tmp_path / "lake", lake, {"status": "interrupted"}, [update])
    game = {"environment": "atari", "game": "Hero", "total_frames": 50_000, "frame_skip": 4}
    write_run_dir(tmp_path / "game", game, None, [update])
    write_atari(tmp_path / "evaluated", scores=(1.0, 2.0), status="interrupted")
    with locked(tmp_path / "sea/lock.json"):
        write_report(tmp_path, tmp_path / "out.html")
    with (tmp_path / "out_files/tables/not-counted.csv").open() as file:
        assert {row["run"]: row["why"] for row in csv.DictReader(file)} == {
            "sea": "under way (1,200 episodes of at most 2,000 so far)",
            "failed": "boom (1 episode of at most 2,000 so far)",
            "begun": "stopped",
            "torn": "stopped",
            "lake": "interrupted (7,000 steps of at most 20,000 so far)",
            "game": "stopped: not evaluated yet (28,000 frames of at most 50,000 so far)",
            "evaluated": "interrupted: its evaluations so far are counted, up to 2,000,000 frames",
        }


def test_every_figure_is_there_as_png_and_svg_and_every_table_as_csv_and_latex(report):
    files = report.parent / "report_files"
    figures = {path.stem for path in (files / "figures").glob("*.png")}
    assert figures == {path.stem for path in (files / "figures").glob("*.svg")}
    assert {
        "deep-sea",
        "deep-sea-solved",
        "deep-sea-regret",
        "atari-scores",
        "atari-heads",
        "atari-profiles",
    } <= figures
    tables = {path.stem for path in (files / "tables").glob("*.csv")}
    assert tables == {path.stem for path in (files / "tables").glob("*.tex")}
    assert {"deep-sea", "maximal-scores", "normalised-scores", "vote-diversity", "runtime", "improvement"} <= tables


def test_every_run_is_a_row_of_numbers_beside_the_report(report):
    table = pd.read_csv(report.parent / "report_files/runs.csv")
    runs = load_results(report.parent)
    assert list(table.run) == list(runs.run)
    solved = table[(table.environment == "deep-sea") & (table.strategy == "gain") & table.counted]
    assert sorted(solved.solved_at_strict) == [300.0, 300.0, 301.0, 301.0, 302.0, 302.0, 303.0, 303.0]
    assert set(solved.solved) == {True}
    assert table.seed.dtype == float  # two runs have none
    assert "variant" not in table


def test_runs_are_also_a_parquet_file_where_pyarrow_is_installed(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: make install has it")
    write_deep_sea(tmp_path / "a", size=5, seed=3, solved=7)
    found = pd.read_parquet(write_report(tmp_path, tmp_path / "report.html").parent / "report_files/runs.parquet")
    assert (found.seed[0], found.solved_at_strict[0], found.hidden_sizes[0]) == (3, 7, "50 50")


def test_the_answer_comes_first_with_the_number_of_runs_behind_it(report):
    page = report.read_text()
    answer = html.unescape(re.search(r'<p class="answer">(.*?)</p>', page, re.DOTALL).group(1))
    assert "At N = 10, BootDQN-EVOI needed the fewest episodes: 101.5 on average, 4 of 4 runs solved" in answer
    assert "BootDQN-EVOI has the highest maximal score in 5 of 6 games" in answer
    assert "2 seeds" in answer
    assert page.index('<p class="answer">') < page.index("<table") < page.index("<nav>") < page.index("<h2")


def test_the_first_screen_has_the_comparison_and_its_circumstances(report):
    page = html.unescape(report.read_text())
    first_screen = page[: page.index("<nav>")]
    assert f"<h1>{report.parent.name}: " in first_screen
    assert "<title>Who" not in page
    for text in ("\N{MINUS SIGN}200", "p = 0.029", "4 and 4", " UTC, bootdqn ", "bootdqn report "):
        assert text in first_screen, text
    assert re.search(r"\d+ of \d+ runs in .*, \d+ seeds; \d{4}-\d\d-\d\d", first_screen)


def test_figures_follow_the_colours_of_the_page(report):
    page = report.read_text()
    figures = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert figures
    for figure in figures:
        assert not re.search(r"(fill|stroke): #", figure), "a colour that is the same on dark paper"
        assert "currentColor" in figure
    assert "color-mix" not in (report.parent / "report_files/figures/deep-sea.svg").read_text()


def test_a_probability_of_one_seed_is_no_table(tmp_path):
    for strategy in ("evoi", "greedy"):
        write_atari(tmp_path / strategy, "Hero", strategy, 0)
    write_report(tmp_path, tmp_path / "out.html")
    tables = {path.stem for path in (tmp_path / "out_files/tables").glob("*.csv")}
    assert "maximal-scores" in tables
    assert "improvement" not in tables
    assert "too few seeds" in (tmp_path / "out_files/tables/comparisons.csv").read_text()


def test_atari_runs_of_different_settings_are_distinguished_and_judged_by_no_claim(tmp_path):
    for seed in range(2):
        write_atari(tmp_path / f"plain/{seed}", "Hero", "evoi", seed, scores=(10.0,))
        write_atari(tmp_path / f"prior/{seed}", "Hero", "evoi", seed, scores=(30.0,), prior_scale=3.0)
        write_atari(tmp_path / f"sticky/{seed}", "Hero", "evoi", seed, scores=(50.0,), sticky=0.25)
        write_atari(tmp_path / f"heads/{seed}", "Hero", "evoi", seed, num_heads=4, scores=(70.0,))
        write_atari(tmp_path / f"dqn/{seed}", "Hero", "greedy", seed, num_heads=1, scores=(90.0,), epsilon=0.1)
    evaluations = evaluations_below(tmp_path)
    found = {
        row["algorithm"]: (row["ours"], row["paper"]) for row in rows(maximal_scores(with_paper_heads(evaluations)))
    }
    assert found == {
        "BootDQN-EVOI": ("10.0", "28,539.3"),
        "BootDQN-EVOI + prior 3": ("30.0", ""),
        "BootDQN-EVOI, sticky=0.25": ("50.0", ""),
        "Double DQN, ε 0.1": ("90.0", ""),
    }
    evidence = Evidence.among(deep_sea_table([]), evaluations)
    assert best_scores(evidence.games) == [10.0, 10.0]
    assert sorted(best_scores(evidence.any_heads)) == [10.0, 10.0, 70.0, 70.0]


def test_heads_that_the_paper_has_no_table_for_are_never_mixed(tmp_path):
    for heads in (2, 6):
        write_atari(tmp_path / str(heads), num_heads=heads, scores=(float(heads),))
    found = rows(maximal_scores(with_paper_heads(evaluations_below(tmp_path))))
    assert [(row["algorithm"], row["ours"]) for row in found] == [
        ("BootDQN-EVOI, K = 2", "2.0"),
        ("BootDQN-EVOI, K = 6", "6.0"),
    ]


def test_heads_of_one_game_do_not_hide_those_of_another(tmp_path):
    write_atari(tmp_path / "hero", "Hero", num_heads=10, scores=(1.0,))
    write_atari(tmp_path / "venture", "Venture", num_heads=2, scores=(2.0,))
    found = rows(maximal_scores(with_paper_heads(evaluations_below(tmp_path))))
    assert [(row["game"], row["algorithm"], row["ours"]) for row in found] == [
        ("Venture", "BootDQN-EVOI, K = 2", "2.0"),
        ("Hero", "BootDQN-EVOI", "1.0"),
    ]


study_of_runs = st.sets(
    st.tuples(st.sampled_from(["Hero", "Venture"]), st.sampled_from(["gain", "evoi"]), st.sampled_from([2, 6, 10]))
)


@settings(max_examples=30)
@given(study_of_runs)
def test_every_run_is_in_the_tables_of_scores_or_in_that_of_k(cells):
    runs = [
        AtariRun(game, name, scores=(float(number),), num_heads=k)
        for number, (game, name, k) in enumerate(sorted(cells))
    ]
    evaluations = evaluations_table(runs)
    shown = {row["ours"] for row in rows(maximal_scores(with_paper_heads(evaluations)))}
    by_k = runtime_table(evaluations)
    shown |= {row["maximal score"] for row in rows(by_k)} if by_k else set()
    assert shown == {f"{run.scores[0]:,.1f}" for run in runs}


def test_settings_that_all_runs_share_are_listed_once(tmp_path):
    for seed in range(2):
        write_deep_sea(tmp_path / f"a/{seed}", seed=seed, batch_size=8, learning_rate=0.1)
        write_deep_sea(tmp_path / f"b/{seed}", seed=seed, batch_size=8, prior_scale=3.0, learning_rate=0.2)
    page = write_report(tmp_path, tmp_path / "out.html").read_text()
    assert "All of these runs: batch_size=8." in page
    assert "BootDQN-Gain, learning_rate=0.1" in page
    assert "BootDQN-Gain + prior 3, learning_rate=0.2" in page


def test_a_directory_of_variants_has_figures_and_the_score_for_them(tmp_path):
    for scale in (0.0, 3.0):
        for size in range(10, 20, 2):
            write_deep_sea(tmp_path / f"{scale}/{size}", size=size, cap=10_000, solved=500, prior_scale=scale)
    write_report(tmp_path, tmp_path / "out.html")
    figures = {path.stem for path in (tmp_path / "out_files/figures").glob("*.png")}
    assert figures == {"deep-sea", "deep-sea-frontier"}, "all seeds solved it: a bar of 100 % everywhere shows nothing"
    assert (tmp_path / "out_files/tables/bsuite-score.csv").exists()


def test_plain_strategies_at_other_sizes_have_neither(report):
    files = report.parent / "report_files"
    assert not (files / "figures/deep-sea-frontier.png").exists()
    assert not (files / "figures/deep-sea-ablation.png").exists()
    assert not (files / "tables/bsuite-score.csv").exists()


def test_one_algorithm_alone_is_nothing_to_compare(tmp_path):
    write_atari(tmp_path / "a", seed=0)
    write_atari(tmp_path / "b", seed=1, scores=(1.0, 6.0))
    expected = "On Atari, BootDQN-EVOI has a maximal score of 4.5 on Hero (2 seeds, 2M frames); " + NOTHING
    assert games_conclusion(evaluations_below(tmp_path)) == expected
    for game in ("Alien", "Venture", "Solaris"):
        write_atari(tmp_path / game, game)
    expected = "of 3.0 on Solaris, 3.0 on Venture, 3.0 on Alien and 1 further game (1 seed, 2M frames); " + NOTHING
    assert games_conclusion(evaluations_below(tmp_path)).endswith(expected)


def test_the_answer_counts_no_tie_and_names_all_that_are_first(tmp_path):
    for game, scores in (("Hero", (9.0, 2.0, 1.0)), ("Alien", (2.0, 9.0, 1.0)), ("Venture", (5.0, 5.0, 1.0))):
        for strategy, score in zip(("greedy", "ucb", "gain"), scores, strict=True):
            write_atari(tmp_path / game / strategy, game, strategy, scores=(score,))
    evaluations = evaluations_below(tmp_path)
    rests_on = "of 3 algorithms on 1 seed and 1M frames."
    assert games_conclusion(evaluations) == (
        f"On Atari, BootDQN and BootDQN-UCB each have the highest maximal score in 1 of 3 games, {rests_on}"
    )
    assert games_conclusion(evaluations[evaluations.game == "Venture"]) == (
        f"On Atari, none has the highest maximal score alone in any of 1 game, {rests_on}"
    )
    assert games_conclusion(evaluations[evaluations.game == "Hero"]) == (
        f"On Atari, BootDQN has the highest maximal score in 1 of 1 game, {rests_on}"
    )


def test_the_heading_counts_every_run_directory_once(tmp_path):
    write_deep_sea(tmp_path / "size", size="three")
    write_atari(tmp_path / "torn", scores=(1.0,))
    (tmp_path / "torn/metrics.jsonl").write_text("[]\n")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/config.json").write_text("{")
    assert "0 of 3 runs in" in write_report(tmp_path, tmp_path / "out.html").read_text()
    one = write_report(tmp_path / "size", tmp_path / "one.html").read_text()
    assert "0 of 1 run in" in one
    assert "There is nothing to compare yet." in one


def test_runs_with_different_caps_have_sections_of_their_own(tmp_path):
    for cap in (50, 100):
        write_deep_sea(tmp_path / str(cap), cap=cap)
    page = write_report(tmp_path, tmp_path / "out.html").read_text()
    assert "DeepSea, at most 100 episodes" in page
    assert "DeepSea, at most 50 episodes" in page


def test_several_directories_make_one_report_in_which_a_run_counts_once(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_gym(tmp_path / "a/gain")
    write_gym(tmp_path / "b/greedy", "greedy")
    write_gym(tmp_path / "b/again", "greedy")
    assert run_command_line(["report", "a", "b", str(tmp_path / "b/greedy")]) == 0
    assert "2 of 3 runs in a, b, " in (tmp_path / "report.html").read_text()
    with (tmp_path / "report_files/tables/not-counted.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["run"] == "b/greedy"
    assert row["why"] == "the same algorithm and seed as b/again, which is counted"
    capsys.readouterr()
    assert run_command_line(["report", "a", "nowhere"]) == 2
    assert "nowhere is not a directory" in capsys.readouterr().err
    assert run_command_line(["report"]) == 2
    assert "report needs DIR, as in bootdqn report runs/deepsea" in capsys.readouterr().err


def test_a_directory_without_runs_is_named(tmp_path, capsys):
    with pytest.raises(UsageError, match="there is no run"):
        write_report(tmp_path, tmp_path / "report.html")
    assert run_command_line(["report", str(tmp_path / "nowhere")]) == 2
    assert not (tmp_path / "nowhere").exists()
    assert "is not a directory" in capsys.readouterr().err
    assert run_command_line(["report", str(tmp_path), "--out", "x.pdf"]) == 2


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC, errno.EACCES], ids=errno.errorcode.get)
@pytest.mark.parametrize("write", ["write_text_atomically", "write_bytes_atomically"])
def test_a_report_that_cannot_be_written_is_an_error_that_names_the_remedy(tmp_path, capsys, monkeypatch, write, code):
    def fail(path, _content):
        raise OSError(code, os.strerror(code), str(path))

    write_gym(tmp_path / "run", episodes=[(1, 1.0), (2, 2.0)])
    monkeypatch.setattr(f"bootdqn.reports.report.{write}", fail)
    assert run_command_line(["report", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"bootdqn: the report cannot be written to {tmp_path}: {os.strerror(code).lower()}")
    assert message.endswith("; --out FILE.html writes it elsewhere\n")
    assert message.count("\n") == 1


def test_the_page_opens_in_a_browser_without_errors_or_network_requests(report, tmp_path):
    dom = opened(report, tmp_path / "profile", f"--log-net-log={tmp_path}/net.json")
    assert dom.count("<table>") >= 7
    assert dom.count("<svg") >= 7
    assert html.escape(EVIL, quote=False) in dom
    assert "<script" not in dom
    asked = re.findall(r'"url":"https?://([^/"]+)', (tmp_path / "net.json").read_text())
    browsers_own = (".google.com", ".googleapis.com", ".gvt1.com")
    assert not [host for host in asked if not host.endswith(browsers_own)]
    outside = re.findall(r"""(?:src|href)=["'](?!#|data:)([^"']+)""", report.read_text())
    assert not [one for one in outside if not one.startswith("#")]
    assert json.loads((tmp_path / "net.json").read_text())["events"], "the log was written"
