"""Plain word lists the generators draw from."""

from __future__ import annotations


def split_words(text: str) -> tuple[str, ...]:
    """Cut a line of words apart."""
    return tuple(text.split())


def with_article(phrase: str) -> str:
    """Put "a" or "an" before a phrase."""
    return ("an " if phrase[0] in "aeiou" else "a ") + phrase


FIRST_NAMES = split_words(
    "Ada Alan Alice Amir Ana Anders Anita Aisha Ben Bruno Carla Carmen Cheng Chloe Clara Dana "
    "Daniel David Diego Elena Eli Emma Erik Eva Farah Felix Fiona Frank Grace Hana Hans Hugo Ida "
    "Igor Ines Ivan Jack Jane Jonas Jorge Julia Kai Karim Kate Kofi Lars Laura Leo Lena Lina Liu "
    "Lucas Lucy Luis Maria Marco Mark Mary Mei Mia Milan Mina Mona Nadia Nina Noah Nora Olga Omar "
    "Oscar Otto Paul Pedro Petra Priya Rosa Ravi Rita Robert Ruth Sam Sara Sofia Stefan Sven Tara "
    "Theo Tom Tina Uma Vera Victor Wei Yara Yuki Yusuf Zoe Zara"
)
REAL_CITIES = split_words(
    "Lisbon Porto Madrid Paris Lyon Rome Milan Vienna Berlin Hamburg Oslo Bergen Prague Warsaw "
    "Athens Dublin Cairo Lagos Nairobi Delhi Mumbai Tokyo Osaka Kyoto Seoul Lima Quito Bogota "
    "Toronto Boston Chicago Denver Dallas Sydney Perth Zurich Geneva Ghent Turin Leeds York"
)
ONSETS = split_words("b br c ch d dr f fl g gr h j k kl l m n p pr r s sh st t th tr v w z")
VOWELS = split_words("a e i o u a e i o ai ea ia io ou")
CODAS = split_words("l n r s t m d k nd rt ss th x ck")
NAME_ENDS = split_words("a ia o en in an el is or us ette ina ara eth y ra la na ro")
CITY_ENDS = split_words("ville ton burg ford port field haven mouth bridge stad dale wick ora mar polis by ham berg")
COMPANY_ENDS = split_words("Works Labs Foods Motors Systems Books Textiles Energy Tools Logistics Media Partners Group")
ROLE_LEVELS = split_words("senior junior chief lead night assistant head deputy regional trainee")
ROLES = split_words(
    "welder baker nurse pilot teacher engineer plumber librarian designer farmer lawyer chemist "
    "driver editor painter tailor surgeon gardener analyst architect barber carpenter cashier "
    "clerk cook courier curator dentist doctor electrician fisher florist geologist guard judge "
    "mechanic miner musician optician pharmacist photographer physicist potter printer producer "
    "reporter sailor scientist secretary singer surveyor translator waiter weaver writer"
)
COLOURS = split_words("red blue green yellow black white orange purple brown grey pink silver gold")
MATERIALS = split_words(
    "wooden steel glass paper copper cotton plastic leather ceramic stone rubber silk old new "
    "small large heavy light round square"
)
THINGS = split_words(
    "lamp chair table clock basket bottle bowl box brush bucket candle carpet coat cup desk drum "
    "fan flute fork glove hammer hat kettle key kite knife ladder lock map mirror mug needle "
    "notebook pan pen pillow plate pot radio ring rope ruler scarf shelf shovel spoon stool "
    "suitcase tent towel tray umbrella vase violin wallet watch wheel whistle"
)
ANIMALS = split_words(
    "fox rabbit owl bear mouse hedgehog squirrel otter badger deer duck turtle frog goat cat dog "
    "horse sparrow crow beaver lamb pony"
)
TEAMS = split_words(
    "sales support finance design research legal marketing security planning shipping training "
    "quality payroll testing operations"
)
STATUSES = split_words("open closed pending active paused shipped late ready draft approved blocked")
FOODS = split_words(
    "bread soup rice pasta cheese apples pears plums grapes honey noodles beans carrots olives "
    "cake salad fish pancakes dumplings porridge"
)
HOBBIES = split_words(
    "chess painting sailing running singing dancing fishing cooking reading climbing swimming "
    "gardening drawing cycling skiing knitting photography pottery archery rowing"
)
SUBJECTS = split_words(
    "physics history biology music chemistry geography law medicine economics art poetry botany "
    "astronomy philosophy mathematics geology"
)
DAYS = split_words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
MONTHS = split_words("January February March April May June July August September October November December")
IDENTS = split_words(
    "total count value index item score price size width height name text line word node left "
    "right start end step limit rate speed weight length depth result list row column key data "
    "buffer offset state level mode user group token page file path part unit cost tax amount "
    "balance angle point edge graph tree queue stack cache batch chunk block frame pixel color "
    "time day hour month year order stock cart owner label title number digit letter flag"
)
IDENT_FIRST = split_words(
    "old new my last first next max min base raw clean local temp inner outer main full half "
    "current final user file total net gross daily"
)
