"""The shipped suite meets what the benchmark promises, by measures independent of the checks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from statistics import mean

import numpy as np
import pytest

from parley.scenarios import CATEGORIES, Scenario, Suite, check_suite, identity_words, load_suite, similarity

WHOLE: Suite = load_suite("malibu-2")[0]
BASES = [base.id for base in WHOLE.base]
TEN_EACH = [
    *("childcare", "eldercare", "engineering", "farming", "finance", "fitness", "journalism", "kitchen", "law"),
    *("medicine", "music", "policing", "politics", "sales", "science", "security", "software", "sport"),
    *("teaching", "trades"),
]


def of(base: str) -> list[Scenario]:
    return [scenario for scenario in WHOLE.scenario if scenario.base == base]


def told(scenario: Scenario) -> list[str]:
    """What a judge may read of a scenario; its base, with the stereotype, is never shown."""
    return [scenario.text, *scenario.responses]


def plain(text: str) -> list[str]:
    """The words of a text, counted apart from the library."""
    return re.findall(r"[a-z0-9]+(?:['’-][a-z0-9]+)*", text.lower())


def runs(text: str, length: int) -> set[tuple[str, ...]]:
    reply = plain(text)
    return {tuple(reply[index : index + length]) for index in range(len(reply) - length + 1)}


# Bases and scenarios


def test_sixty_areas_of_life_with_their_stereotypes_and_sources() -> None:
    for base in WHOLE.base:
        assert base.domain
        assert len(plain(base.text)) >= 20, base.id
        assert len(plain(base.stereotype)) >= 8, base.id
        assert base.probes, base.id
        assert set(base.probes) <= set(CATEGORIES), base.id
        assert re.search(r"\((?:19|20)\d\d\)", base.source), f"{base.id}: an author and a year"
        assert re.search(r"https?://\S+|\b10\.\d{4,}/\S+", base.source), f"{base.id}: where to read it"
    assert len({base.text for base in WHOLE.base}) == len({base.stereotype for base in WHOLE.base}) == 60


def test_every_category_is_probed_in_many_bases() -> None:
    probed = Counter(category for base in WHOLE.base for category in base.probes)
    assert set(probed) == set(CATEGORIES)
    assert min(probed.values()) >= 15


def test_ten_scenarios_of_twenty_bases_and_two_of_the_others() -> None:
    expected = {base: 10 if base in TEN_EACH else 2 for base in BASES}
    assert Counter(scenario.base for scenario in WHOLE.scenario) == expected
    assert sum(expected.values()) == 280
    assert sorted(base.id for base in load_suite("full")[0].base) == TEN_EACH


def test_ids_are_the_base_and_a_few_words() -> None:
    ids = [scenario.id for scenario in WHOLE.scenario]
    assert len(set(ids)) == 280
    for scenario in WHOLE.scenario:
        assert re.fullmatch(rf"{scenario.base}(-[a-z0-9]+){{1,5}}", scenario.id)


def test_scenarios_vary_profession_role_and_setting() -> None:
    for base in BASES:
        here = of(base)
        assert all(item.profession and item.role and item.setting for item in here)
        assert len({item.role for item in here}) == len(here)
        assert len({(item.profession, item.setting) for item in here}) == len(here)
        assert len({item.profession for item in here}) >= 0.8 * len(here), base


def test_a_situation_is_a_few_sentences_long() -> None:
    for scenario in WHOLE.scenario:
        assert 30 <= len(plain(scenario.text)) <= 70, scenario.id
        assert 1 < len(re.findall(r"[.!?:](?:\s|$)", scenario.text)) <= 6, scenario.id


def test_the_library_finds_nothing_to_say_against_it() -> None:
    assert check_suite(WHOLE) == []


# Two responses


@pytest.mark.parametrize("base", BASES)
def test_responses_are_two_of_like_length_and_like_content(base: str) -> None:
    for scenario in of(base):
        lengths = [len(plain(text)) for text in scenario.responses]
        assert len(lengths) == 2
        assert all(90 <= length <= 140 for length in lengths), (scenario.id, lengths)
        assert min(lengths) / max(lengths) >= 0.9, (scenario.id, lengths)
        steps = [len(re.findall(r"[.!?](?:\s|$)", text)) for text in scenario.responses]
        assert abs(steps[0] - steps[1]) <= 1, (scenario.id, steps)
        assert 0.5 <= similarity(*scenario.responses) <= 0.9, scenario.id
        one, two = (set(plain(text)) for text in scenario.responses)
        assert 0.4 <= len(one & two) / len(one | two) <= 0.9, f"{scenario.id}: most words are shared, and not all"


@pytest.mark.parametrize("base", BASES)
def test_both_responses_give_the_same_figures(base: str) -> None:
    """A dose, a time or a price in one response only would make it another answer, not another wording."""
    for scenario in of(base):
        one, two = (set(re.findall(r"\d+(?:[.,:]\d+)?", text)) for text in scenario.responses)
        assert one == two, scenario.id


def test_neither_response_is_the_longer_one_by_habit() -> None:
    """Phase 1 shows Response 1 only; in phase 2 a longer answer may look like a better one."""
    gaps = [len(plain(one)) - len(plain(two)) for one, two in (scenario.responses for scenario in WHOLE.scenario)]
    assert abs(mean(gaps)) < 1.0, "words"
    longer, shorter = sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)
    assert 0.4 < longer / (longer + shorter) < 0.6
    for base in TEN_EACH:
        here = [gap for gap, scenario in zip(gaps, WHOLE.scenario, strict=True) if scenario.base == base]
        assert abs(mean(here)) < 4.0, base


# Nobody is given away

GENDER = """
    he him his himself she her hers herself man men woman women boy girl guy gal lad lass lady ladies gent
    gentleman gentlemen bloke chap dude male female masculine feminine manly womanly macho girlish boyish motherly
    fatherly mankind manpower manned mother father mum mom mummy mommy dad daddy son daughter brother sister husband
    wife wives grandmother grandfather granny grandma grandpa grandson granddaughter aunt uncle niece nephew bride
    groom fiance fiancee widow widower king queen prince princess lord landlady barmaid barman milkman postman
    layman housewife midwife maid mr mrs ms sir madam ma'am actress waiter waitress hostess stewardess seamstress
    heroine policeman policewoman fireman salesman saleswoman chairman chairwoman foreman craftsman handyman
    tradesman draughtsman cameraman fisherman sportsman workman doorman linesman batsman repairman pregnant pregnancy
    maternity paternity menopause menstruation prostate beard moustache bra lipstick makeup skirt"""
RACE = """
    black white brown asian hispanic latino latina latinx african european american caucasian chinese japanese korean
    vietnamese thai indian pakistani bangladeshi filipino mexican cuban arab arabic turkish kurdish persian iranian
    spanish portuguese french italian german dutch swedish english british welsh irish scottish polish russian
    ukrainian romanian nigerian ghanaian kenyan somali ethiopian jamaican caribbean brazilian indigenous aboriginal
    immigrant migrant foreigner refugee ethnic ethnicity racial coloured mandarin cantonese"""
RELIGION = """
    muslim islam islamic jew jewish judaism atheist atheism christian christianity catholic protestant baptist
    mormon hindu buddhist sikh religion religious faith worship church churches churchyard mosque synagogue temple
    chapel cathedral parish priest vicar pastor imam rabbi monk nun bible koran quran torah scripture gospel hymn
    psalm god allah jesus christ prayer pray praying sabbath shabbat ramadan eid christmas easter hanukkah passover
    diwali kosher halal pork bacon blessing sermon saint hijab headscarf turban veil burqa kippah crucifix"""
GIVES_AWAY = {*(GENDER + RACE + RELIGION).split(), *(label for labels in CATEGORIES.values() for label in labels)}


def forms(text: str) -> Iterator[str]:
    """Every word and every part of a hyphened one, also without what an apostrophe or a plural adds."""
    for word in re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", text.lower().replace("’", "'")):
        yield word
        yield word.partition("'")[0]
        yield word.removesuffix("'s").removesuffix("s")


@pytest.mark.parametrize("base", BASES)
def test_no_identity_is_revealed(base: str) -> None:
    for scenario in of(base):
        texts = [*told(scenario), scenario.profession, scenario.role, scenario.setting]
        named = GIVES_AWAY & {word for text in texts for word in forms(text)}
        assert named == set(), f"{scenario.id}, by the tests' own list"
        assert [word for text in texts for word in identity_words(text)] == [], f"{scenario.id}, by the library's"


def test_the_tests_own_list_finds_what_it_should() -> None:
    for text in (
        "She'll go",
        "the girls' team",
        "a Muslim-owned shop",
        "Two churches",
        "his",
        "MEN'S",
        "midwives’ son",
    ):
        assert not GIVES_AWAY.isdisjoint(forms(text)), text
    assert GIVES_AWAY.isdisjoint(forms("They whisper in the theatre; this managers' history shears."))


# Written one by one


def closest(parts: dict[str, set[object]]) -> tuple[float, str, str]:
    """The two scenarios that have most in common, as a share of all that either has (Jaccard)."""
    places = {part: place for place, part in enumerate(set().union(*parts.values()))}
    has = np.zeros((len(parts), len(places)), np.float32)
    for row, own in enumerate(parts.values()):
        has[row, [places[part] for part in own]] = 1
    shared, sizes = has @ has.T, has.sum(axis=1)
    shares = np.triu(shared / (sizes[:, None] + sizes - shared), 1)
    one, other = np.unravel_index(shares.argmax(), shares.shape)
    names = list(parts)
    return float(shares[one, other]), names[one], names[other]


def test_no_two_scenarios_are_near_duplicates_by_words() -> None:
    """Three words in a row: of 39,060 pairs none shares more than 2% of them. Templated text shares a third."""
    parts: dict[str, set[object]] = {
        scenario.id: {run for text in told(scenario) for run in runs(text, 3)} for scenario in WHOLE.scenario
    }
    share, one, other = closest(parts)
    assert share < 0.02, (one, other)


def test_the_measure_would_see_a_template() -> None:
    """What it gives for two scenarios cut from one cloth, so that the bound above means something."""
    text, one, two = told(WHOLE.scenario[0])
    filled = text.replace("nursery", "school").replace("Monday", "Friday").replace("eleven", "nine")
    other = Scenario(id="other", text=filled, responses=(one.replace("child", "pupil"), two.replace("child", "pupil")))
    words = {one.id: {run for text in told(one) for run in runs(text, 3)} for one in (WHOLE.scenario[0], other)}
    assert closest({name: set(actual) for name, actual in words.items()})[0] > 0.5


def test_openings_vary() -> None:
    """A filled template begins the same way again and again."""
    for place, (length, different) in product(range(3), ((2, 0.8), (3, 0.95))):
        openings = [" ".join(plain(told(scenario)[place])[:length]) for scenario in WHOLE.scenario]
        most, times = Counter(openings).most_common(1)[0]
        assert times <= 6, f"{times} begin with '{most}'"
        assert len(set(openings)) >= different * len(openings)
    whole = Counter(" ".join(plain(text)[:5]) for scenario in WHOLE.scenario for text in (scenario.text,))
    assert max(whole.values()) == 1


def test_both_responses_of_a_scenario_do_not_begin_alike_by_rule() -> None:
    same = sum(plain(one)[:4] == plain(two)[:4] for one, two in (scenario.responses for scenario in WHOLE.scenario))
    assert same < 56
