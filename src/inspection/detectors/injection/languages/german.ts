import type { InjectionLanguage } from './language.ts'

export const german: InjectionLanguage = {
  leads: ['bitte', 'und', 'jetzt', 'nun', 'du sollst', 'du musst', 'sie mussen', 'dann', 'ich mochte, dass du'],
  ignore: [
    ...[
      'ignorier(?:e|t|en|st)?',
      'vergiss',
      'vergesst',
      'vergessen sie',
      'missachte[nt]?',
      'beachte(?:n sie)?',
      'ubergeh(?:e|en)',
      'verwirf',
      'verwerfen sie',
      'uberspring(?:e|en)',
    ],
    ...['halte dich nicht', 'befolge nicht', 'folge nicht', 'setz(?:e|en sie)', 'las(?:s|sen sie)'],
  ],
  scope: [
    ...[
      'vorherig(?:e|en|er)',
      'bisherig(?:e|en|er)',
      'fruher(?:e|en)',
      'obig(?:e|en)',
      'vorangegangen(?:e|en)',
      'vorigen',
      'alle[nr]?',
      'deine[nr]?',
    ],
    ...['ihre[nr]?', 'ursprunglich(?:e|en)', 'samtliche[nr]?', 'oben', 'des systems'],
  ],
  instructions: [
    ...[
      '(?:system)?anweisungen(?: nicht| ausser)?',
      'instruktionen',
      'befehle?',
      'regeln',
      'vorgaben',
      'richtlinien',
      'anordnungen',
    ],
    ...['einschrankungen', '(?:system-?)?prompts?', 'system-?nachrichten', 'weisungen'],
  ],
  toldModel: [
    '(?:alles|das)?,? ?was (?:dir|ihnen|man dir|man ihnen)\\b[^.\\n]{0,24}(?:gesagt|beigebracht|aufgetragen|befohlen)',
    'alles,? was (?:du|sie)\\b[^.\\n]{0,16}(?:gelernt|wei(?:ss|ß)t|wissen)',
  ],
  containers: [
    'alles (?:obige|bisherige|vorherige|davor|zuvor|oben)',
    'das obige',
    '(?:den|diesen) (?:obigen |vorherigen )?(?:text|code)',
    '(?:die|diese) (?:funktion|tabelle)',
    '(?:das|dieses) dokument',
  ],
  conjunctions: ['und'],
  reveal: [
    ...[
      'zeig(?:e|en sie)?',
      'nenn(?:e|en sie)?',
      'sag(?:e|en sie)?',
      'verrat(?:e|en sie)?',
      'wiederhol(?:e|en sie)',
      'gib',
      'geben sie',
      'schreib(?:e|en sie)?',
      'druck(?:e|en sie)',
    ],
    ...[
      'offenbar(?:e|en sie)',
      'teil(?:e|en sie)',
      'ubersetz(?:e|en sie)',
      'fass(?:e|en sie)',
      'wie laute[nt]',
      'was (?:ist|sind|steht)',
      'welche',
      'kannst du',
      'konnen sie',
      'lies',
      'kopier(?:e|en sie)',
      'liste',
    ],
  ],
  prompt: [
    ...[
      '(?:deinen?|ihren?|den|dein|das|der) (?:\\w{1,16} )?(?:system-?prompt|system prompt|system-?nachricht|start-?prompt)',
      'systemanweisung(?:en)?',
    ],
    ...['(?:deine|ihre) (?:\\w{1,16} )?(?:anweisungen|instruktionen|vorgaben|regeln|richtlinien)'],
    ...['(?:ursprunglichen|internen|geheimen|versteckten) (?:anweisungen|instruktionen|vorgaben|regeln)'],
  ],
  password: [
    ...[
      '\\b(?:dein|ihr) (?:passwort|kennwort|geheimwort|geheimcode|geheimer schlussel)\\b',
      '\\bwie lautet das (?:passwort|kennwort|geheimwort) ?\\?',
    ],
  ],
  unrestricted: [
    '\\b(?:ohne|keine|keinerlei|frei von) (?:jegliche |alle |irgendwelche )?(?:ethische[nr]? |moralische[nr]? )?(?:einschrankung|beschrankung|filter|zensur|regeln|grenzen|moral|ethik)',
  ],
  takeover: ['\\b(?:ab jetzt|ab sofort|von nun an|du bist (?:jetzt|nun)|tu so,? als|gib vor)\\b'],
  ignoreLast: ['ignorieren', 'vergessen', 'missachten', 'verwerfen', 'ubergehen', 'uberspringen', 'auser acht lassen'],
}
