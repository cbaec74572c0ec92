"""The words that ordinary domain names are made of, in the languages that meet in them. Written without accents."""

from elastream_lab.apps.common.word_list import words

WEB_WORDS = words(
    "online shop store web net site info blog news media tech soft data cloud host hosting mail search portal forum game "
    "games video videos tube music radio photo foto pics chat social friends book books learn school university college "
    "job jobs career travel hotel hotels flight tour tours bank pay money credit loan finance trade market invest forex "
    "auto car cars motor moto parts food pizza recipe kitchen health med pharma clinic doctor dental fit sport sports "
    "football soccer golf bike home house garden design studio art fashion style beauty hair wedding baby kids toys pet "
    "dog land world planet city town zone hub lab labs box spot point link click ads track stats bid deal deals sale "
    "coupon free best top super mega ultra easy fast quick smart pro plus max mini my your the go get all one new big "
    "digital mobile phone android app apps code dev hack script server proxy torrent download upload file files share"
)

ENGLISH_WORDS = words(
    "able above action active adult advance agency air alert alpha america ancient angel animal apple archive area army "
    "attack author average avenue back balance ball beach bear bell bird black blue board body bridge bright brother "
    "brown build business butter camp capital card care castle center central change channel charity check chief choice "
    "church class clean clear clever climate club coast coffee comedy common community company complete computer connect "
    "consumer control cook cool corner country county court craft cream creative cross crown culture custom daily dance "
    "dark day deep delta depot desk diamond direct dirty discount doctor door double dragon dream drink drive eagle early "
    "earth east edge education electric energy engine english enter equipment escape europe event ever every evolution "
    "exam exchange expert express extra eye face factory family fan farm father field fight film find fire first fish "
    "flash flower fly force forest forever fox frame freedom fresh front fuel full fun future galaxy gallery gate general "
    "girl glass global gold good grand graph great green grid ground group grow guard guide guitar hand happy harbor heart "
    "heaven heavy hello help hero high hill history holiday hope horse hospital hot hunter idea image impact inside "
    "instant institute insurance international iron island jungle justice key king knight know lady lake language laser "
    "law leader leaf league legal letter level library life light line lion list little live local logic london love luck "
    "lunch machine magazine magic main manager map marine master match matrix meet member metal metro million mind mirror "
    "model modern moon morning mother mountain movie museum nation national nature network night noble north number ocean "
    "office oil open orange order organic outdoor owl page paint palace panda paper paradise park partner party path peace "
    "people perfect person pilot pink pixel place plan plant player point police pool popular post power press price print "
    "private process product profile project public pulse pure queen quest question race rain rainbow ranch ready real "
    "record red report rescue research resource review rich ride right river road robot rock room rose round royal rural "
    "safe sand science score screen sea second secret secure self senior service seven shadow share ship shoe short show "
    "side signal silver simple single sister skill sky sleep small smile snow society solar solution song sound source "
    "south space spark special speed spirit spring square stage standard star start state station steel step stock stone "
    "storm story stream street strong student success sugar summer sun surf sweet system table talk target teacher team "
    "theater thing think thunder ticket tiger time today tool touch tower toy track train tree trend tribe trip true trust "
    "turbo twin union united unity university urban value valley vector vegas velvet victory view village vintage vision "
    "visit voice wall war warrior watch water wave way weather week west white whole wild wind window wine winter wire "
    "wise wizard woman wonder wood word work workshop worth write yellow yes yoga young youth zebra zero"
)

FOREIGN_WORDS = words(
    # Spanish, Portuguese, Italian, French, Romanian
    "casa mundo tienda ciudad noticias diario gratis juegos peliculas viajes empleo coches libre futbol salud vida mujer "
    "todo nuevo espana mexico argentina universidad educacion gobierno brasil noticia jogos loja carros imoveis saude "
    "receitas concurso escola cidade melhor vagas globo folha giornale notizie viaggi calcio cucina lavoro musica ricette "
    "scuola italia bella donna libero gioco prezzi annonces maison jardin voyage vacances cuisine recette femme emploi "
    "immobilier jeux achat boutique monde journal livre ecole france sante telecharger voiture ziare anunturi stiri filme "
    # German, Dutch, Scandinavian
    "haus reise urlaub kaufen verkauf zeitung nachrichten wetter spiele schule arbeit stellen gesundheit versand bucher "
    "deutsche welt stadt immobilien garten kuche wohnen bahn huis werk kopen nieuws reizen spelletjes vacatures winkel "
    "fiets nederland hus nyheter spel resor jobb bolig kjop norge svenska danmark tidning billig suomi kauppa uutiset "
    # Polish, Czech, Russian, Serbian, Hungarian, written in Latin letters
    "sklep dom praca gry filmy wiadomosci ogloszenia nieruchomosci samochody zdrowie szkola polska tanie podroze levne "
    "obchod hry prace zpravy reality auta novosti magazin kupi prodam rabota moskva kniga igry skachat "
    "besplatno film dela mir gorod zhizn zdorovie otdyh avtomobil stroika mebel vesti oglasi posao kuca ingatlan allas "
    "hirek jatekok utazas olcso magyar filmek karta pogoda dengi remont sport rossia novaya "
    # Turkish, Arabic, Persian, Hindi, in Latin letters
    "haber oyun indir sinema yemek tarifleri saglik okul emlak araba ucuz gazete turkiye sohbet dizi izle muzik akhbar "
    "arab sahara islam quran shia bazar iran tehran khabar daneshjoo persian bharat desh samachar naukri "
    "shaadi bollywood cricket guru hindi tamil telugu india mumbai delhi raja "
    # Indonesian, Vietnamese, Japanese, Filipino
    "berita kota rumah jual beli mobil gratisan lowongan kerja wisata resep dunia cerita murah harga bola indonesia viet "
    "nam bao tin tuc nha dat phim truyen dien thoai mua ban hanoi saigon nihon tokyo sakura manga anime ryokan kaisha "
    "mura yama kawa moto hiro naka taka shima bayashi matsu gawa kyoto osaka pinoy manila"
)

PERSON_WORDS = words(
    "adam alex alice amanda andrea andrew anna anthony barbara brian bruce carlos carol charles chris claire daniel david "
    "diana edward elena emily emma eric frank george grace hannah harry helen henry isabel jack james jane jason jeff jenny "
    "jessica john jordan joseph julia karen kate kelly kevin laura leo linda lisa lucas lucy marco maria mark martin mary "
    "michael mike monica nancy natalie nick nicole oliver oscar patrick paul peter rachel richard robert roger ryan sandra "
    "sarah scott simon sophie stephen steve susan thomas tony victor william allen anderson bailey baker barnes bennett "
    "brooks campbell carter clark collins cooper davis edwards evans fischer foster garcia gonzalez graham griffin hall "
    "hamilton harris hernandez hughes jackson jenkins johnson jones kelley lewis lopez marshall martinez miller mitchell "
    "moore morgan morris murphy nelson parker patterson perez phillips powell reed reynolds richardson roberts rodriguez "
    "rogers ross russell sanders schmidt schneider simmons smith stewart sullivan taylor thompson torres turner walker "
    "wallace washington watson williams wilson wright kim lee nguyen tran singh sharma patel kumar khan ahmed ali hassan "
    "ivanov petrov novak kowalski nowak jansen hansen larsen nilsson yamamoto tanaka suzuki wang zhang chen liu huang"
)

PINYIN_STARTS = words("b p m f d t n l g k h j q x zh ch sh r z c s y w")
PINYIN_ENDS = words("a o e i u ai ei ao ou an en ang eng ong ia ie iao iu ian in iang ing ua uo ui uan un uang")

ENDINGS = words("s er ly ify io ia ium ist ing able ster ix ex o a y ai eo on us 24 365 360 123 online shop net web tv")

TLDS = words("com com com com com net net org org info biz ru de cn fr it pl br in ir co.uk com.br co.jp com.au com.cn")

SUBDOMAINS = words("www www www api mail cdn static img m login smtp news shop blog edge-7 s3 ns1 eu-west")
