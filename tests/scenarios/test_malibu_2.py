"""The shipped suite meets what the benchmark promises, by measures independent of the checks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from statistics import mean

import numpy as np

from parley.scenarios import CATEGORIES, Scenario, Suite, check_suite, identity_words, load_suite, similarity

WHOLE: Suite = load_suite("malibu-2")[0]
BASES = [base.id for base in WHOLE.base]
TEN_EACH = [
    *("childcare", "eldercare", "engineering", "farming", "finance", "fitness", "journalism", "kitchen", "law"),
    *("medicine", "music", "policing", "politics", "sales", "science", "security", "software", "sport"),
    *("teaching", "trades"),
]


def told(scenario: Scenario) -> list[str]:
    """What a judge may read of a scenario; its base, with the stereotype, is never shown."""
    return [scenario.text, *scenario.responses]


def plain(text: str) -> list[str]:
    """The words of a text, counted apart from the library."""
    return re.findall(r"[a-z0-9]+(?:['’-][a-z0-9]+)*", text.lower())


def runs(text: str, length: int) -> set[tuple[str, ...]]:
    reply = plain(text)
    return {tuple(reply[index : index + length]) for index in range(len(reply) - length + 1)}


def test_sixty_areas_of_life_with_their_stereotypes_and_sources():
    for base in WHOLE.base:
        assert base.domain
        assert (len(plain(base.text)) >= 20, len(plain(base.stereotype)) >= 8) == (True, True), base.id
        assert set() < set(base.probes) <= set(CATEGORIES), base.id
        assert re.search(r"\((?:19|20)\d\d\)", base.source), f"{base.id}: an author and a year"
        assert re.search(r"https?://\S+|\b10\.\d{4,}/\S+", base.source), f"{base.id}: where to read it"
    assert len({base.text for base in WHOLE.base}) == len({base.stereotype for base in WHOLE.base}) == 60
    probed = Counter(category for base in WHOLE.base for category in base.probes)
    assert (set(probed), min(probed.values()) >= 15) == (set(CATEGORIES), True)


def test_ten_scenarios_of_twenty_bases_and_two_of_the_others_vary_profession_role_and_setting():
    assert Counter(scenario.base for scenario in WHOLE.scenario) == {
        base: 10 if base in TEN_EACH else 2 for base in BASES
    }
    assert sorted(base.id for base in load_suite("full")[0].base) == TEN_EACH
    assert len({scenario.id for scenario in WHOLE.scenario}) == 280
    for base in BASES:
        here = [scenario for scenario in WHOLE.scenario if scenario.base == base]
        assert all(item.profession and item.role and item.setting for item in here)
        assert all(re.fullmatch(rf"{base}(-[a-z0-9]+){{1,5}}", item.id) for item in here)
        assert len({item.role for item in here}) == len({(item.profession, item.setting) for item in here}) == len(here)
        assert len({item.profession for item in here}) >= 0.8 * len(here), base


# Two responses


def test_responses_are_two_of_like_length_content_and_figures():
    """A dose, a time or a price in one response only would make it another answer, not another wording."""
    assert check_suite(WHOLE) == [], "the library finds nothing either"
    for scenario in WHOLE.scenario:
        assert 30 <= len(plain(scenario.text)) <= 70, scenario.id
        assert 1 < len(re.findall(r"[.!?:](?:\s|$)", scenario.text)) <= 6, scenario.id
        short, long = sorted(len(plain(text)) for text in scenario.responses)
        assert (short >= 90, long <= 140, short / long >= 0.9) == (True, True, True), scenario.id
        steps = [len(re.findall(r"[.!?](?:\s|$)", text)) for text in scenario.responses]
        assert abs(steps[0] - steps[1]) <= 1, (scenario.id, steps)
        assert 0.5 <= similarity(*scenario.responses) <= 0.9, scenario.id
        one, two = (set(plain(text)) for text in scenario.responses)
        assert 0.4 <= len(one & two) / len(one | two) <= 0.9, f"{scenario.id}: most words are shared, and not all"
        first, second = (set(re.findall(r"\d+(?:[.,:]\d+)?", text)) for text in scenario.responses)
        assert first == second, scenario.id


def test_neither_response_is_the_longer_one_by_habit():
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


def test_no_identity_is_revealed():
    for scenario in WHOLE.scenario:
        texts = [*told(scenario), scenario.profession, scenario.role, scenario.setting]
        named = GIVES_AWAY & {word for text in texts for word in forms(text)}
        assert named == set(), f"{scenario.id}, by the tests' own list"
        assert [word for text in texts for word in identity_words(text)] == [], f"{scenario.id}, by the library's"
    found = ["She'll go", "the girls' team", "a Muslim-owned shop", "Two churches", "his", "MEN'S", "midwives’ son"]
    assert all(GIVES_AWAY & set(forms(text)) for text in found)
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


def test_no_two_scenarios_are_near_duplicates_by_words():
    """Three words in a row: of 39,060 pairs none shares more than 2% of them. Templated text shares a third."""
    parts: dict[str, set[object]] = {
        scenario.id: {run for text in told(scenario) for run in runs(text, 3)} for scenario in WHOLE.scenario
    }
    share, one, other = closest(parts)
    assert share < 0.02, (one, other)
    first = WHOLE.scenario[0]
    text, *pair = (each.replace("nursery", "school").replace("child", "pupil") for each in told(first))
    filled = {run for each in (text, *pair) for run in runs(each, 3)}
    assert closest({"one": parts[first.id], "template": set(filled)})[0] > 0.5, "the measure would see a template"


def test_openings_vary():
    """A filled template begins the same way again and again."""
    for place, (length, different) in product(range(3), ((2, 0.8), (3, 0.95))):
        openings = [" ".join(plain(told(scenario)[place])[:length]) for scenario in WHOLE.scenario]
        most, times = Counter(openings).most_common(1)[0]
        assert times <= 6, f"{times} begin with '{most}'"
        assert len(set(openings)) >= different * len(openings)
    assert len({tuple(plain(scenario.text)[:5]) for scenario in WHOLE.scenario}) == len(WHOLE.scenario)
    same = sum(plain(one)[:4] == plain(two)[:4] for one, two in (scenario.responses for scenario in WHOLE.scenario))
    assert same < 56, "nor do both responses of a scenario begin alike by rule"
