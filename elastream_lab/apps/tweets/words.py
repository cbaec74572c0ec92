"""The words that generated tweets are made of: by topic, by kind and by mood."""

from elastream_lab.apps.common.word_list import words

TOPIC_WORDS = {
    "health": words(
        "virus vaccine vaccines hospital hospitals doctors doctor nurses nurse patients patient infection infections "
        "symptoms fever cough masks mask clinic dose doses variant outbreak pandemic epidemic quarantine lockdown tests "
        "treatment medicine therapy surgery immunity ventilators intensive care disease health wellness diet sleep "
        "cancer diabetes heart pharmacy antibodies booster contagious recovered deaths cases positive"
    ),
    "politics": words(
        "election elections vote votes voters ballot senate senator parliament minister president governor mayor party "
        "campaign debate policy law bill congress government opposition coalition referendum protest protesters democracy "
        "republic diplomat embassy treaty sanctions candidate poll polls cabinet reform corruption immigration border "
        "constitution court judge speech rally lawmakers council impeachment summit"
    ),
    "sport": words(
        "match team teams goal goals coach league cup final season player players score scored striker keeper penalty "
        "champion champions stadium fans tennis football basketball boxing fight round knockout race olympics medal "
        "gold tournament transfer club referee injury victory defeat win wins beat title playoffs sprint marathon "
        "qualifier derby training squad champion's ring"
    ),
    "economy": words(
        "market markets stocks shares inflation prices price rates bank banks economy growth recession jobs unemployment "
        "wages budget deficit debt trade tariffs exports imports oil dollar euro bitcoin investors investment profit "
        "earnings revenue startup company companies supply demand mortgage housing rent tax taxes fund bonds currency "
        "retail sales factory manufacturing gdp bankruptcy"
    ),
    "other": words(
        "coffee morning weekend weather rain sunny dog cat birthday music song album concert movie film series episode "
        "book recipe dinner lunch pizza holiday travel beach photo phone game gaming school homework class friends "
        "family mum dad baby garden car traffic train bus shower laundry sofa playlist meme haircut shoes cake monday"
    ),
}

COMMON_WORDS = words(
    "the a of to in and for on with at from by about after before over under more less new old big small today tomorrow "
    "yesterday now week month year people world country city time day night still just already again only also many "
    "some all this that these those it is are was were will would could should has have had be been can may might there "
    "here when where while because but or if so than then very much really another first last next two three million"
)

NEWS_OPENINGS = words(
    "breaking : |update : |just in : |live : |report : |officials say |sources confirm |according to officials |"
    "new figures show |statement released : |exclusive : |authorities announce |experts report |developing story : |"
    "press conference : |analysis : ",
    "|",
)

NEWS_CLOSINGS = words(
    "reports say|spokesperson confirmed|read the full story|more details soon|reuters|according to the ministry|"
    "officials announced on tuesday|the agency said|full coverage here|expected on thursday|figures published today",
    "|",
)

OPINION_OPENINGS = words(
    "i think |honestly |imo |not gonna lie , |i feel like |why is it that |can't believe |i guess |tbh |my take : |"
    "unpopular opinion : |anyone else think |am i the only one who thinks |lol |omg |we all know |to me , |",
    "|",
)

OPINION_CLOSINGS = words(
    "just saying|thoughts ?|lol|smh|don't @ me|that's all|what do you think|fight me|i said it|", "|"
)

GOOD_WORDS = words(
    "love great amazing awesome happy good wonderful brilliant excellent beautiful best fantastic proud glad grateful "
    "perfect hopeful exciting fun impressive superb delightful thrilled nice enjoyed 😀 😍 ❤ 👏 🎉 💪"
)

BAD_WORDS = words(
    "hate terrible awful sad bad horrible disgusting worst angry disappointed boring useless ridiculous shameful painful "
    "pathetic annoying tired ugly stupid disaster mess scary unfair nightmare 😡 😢 👎 💔 😭 🤮"
)

STRESSES = ("so", "really", "very", "absolutely", "pretty", "totally", "")

NEGATIONS = ("not", "never", "hardly", "isn't", "wasn't", "aren't")
