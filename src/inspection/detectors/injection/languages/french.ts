import type { InjectionLanguage } from './language.ts'

export const french: InjectionLanguage = {
  leads: [
    "s'il (?:te|vous) plait",
    'et',
    'maintenant',
    'tu dois',
    'vous devez',
    'veuillez',
    "merci d[e'’] ?",
    'puis',
    'je veux que tu',
  ],
  ignore: [
    ...[
      'ignor(?:e|es|ez|er|ons)',
      'oubli(?:e|es|ez|er|ons)',
      'neglige(?:z|r)?',
      'fais abstraction',
      'faites abstraction',
    ],
    ...[
      'ne (?:tiens|tenez) (?:pas|plus|aucun) compte',
      'ne (?:suis|suivez|respecte[zs]?) (?:pas|plus)',
      'passe[zr]? outre',
      'contourne[zr]?',
      'outrepasse[zr]?',
    ],
  ],
  scope: [
    ...[
      'precedente?s?',
      'anterieure?s?',
      'tou(?:te)?s? (?:les|tes|vos|ce)',
      'toutes?',
      'tes',
      'vos',
      'initiales?',
      'ci-dessus',
    ],
    ...['du systeme', 'qui precede', "d[e'’] ?origine", 'recues?'],
  ],
  instructions: [
    'instructions?',
    'consignes?',
    'directives?',
    'regles?',
    'ordres?',
    'messages? systeme',
    'restrictions?',
    'prompts?',
  ],
  toldModel: [
    "(?:tout )?ce qu(?:[’'] ?|e )(?:on (?:t[’'] ?|vous )(?:a|avait) (?:dit|appris|demande|ordonne)|(?:tu as|vous avez) (?:appris|recu)|tu sais|vous savez)",
    "(?:tout )?ce qui (?:t[’'] ?|vous )(?:a|avait) ete (?:dit|demande|ordonne)",
  ],
  containers: [
    '(?:tout )?ce qui precede',
    '(?:la|cette) (?:fonction|table)',
    '(?:le|ce) (?:texte|code|document|reste)',
  ],
  conjunctions: ['et'],
  reveal: [
    ...[
      'montre(?:z|r)?',
      'affiche[zr]?',
      'revele[zr]?',
      'dis',
      'dites',
      'repete[zr]?',
      'ecri(?:s|vez|re)',
      'donne[zr]?',
      'imprime[zr]?',
    ],
    ...[
      'partage[zr]?',
      'copie[zr]?',
      'resume[zr]?',
      'tradui(?:s|sez|re)',
      'quel(?:le)?s? (?:est|sont|etaient)',
      'peux-tu',
      'pouvez-vous',
      'recite[zr]?',
      'liste[zr]?',
      'indique[zr]?',
    ],
  ],
  prompt: [
    ...[
      "(?:ton|votre|le|tes|vos) (?:\\w{1,12} )?(?:system prompt|prompt (?:systeme|du systeme|initial|cache|d['’]origine)|invite (?:systeme|initiale))",
    ],
    ...['(?:tes|vos) (?:\\w{1,12} )?(?:instructions|consignes|directives|regles)', 'message systeme'],
    ...['(?:instructions|consignes) (?:systeme|du systeme|initiales|cachees|internes|que (?:tu as|vous avez) recues)'],
  ],
  password: [
    ...[
      '\\b(?:ton|votre) (?:mot de passe|code secret|cle secrete|mot secret)\\b',
      '\\bquel est le (?:mot de passe|code secret) ?\\?',
    ],
  ],
  unrestricted: [
    "\\b(?:sans|n['’]as (?:aucune?|plus de)|libere de|depourvu d[e'’]) ?(?:aucune? |toutes? |tes )?(?:restriction|limit|filtre|censure|regles|ethique|morale|contrainte)",
  ],
  takeover: [
    "\\b(?:a partir de maintenant|desormais|dorenavant|tu es maintenant|vous etes maintenant|fais semblant d[e'’]|fais comme si)",
  ],
}
