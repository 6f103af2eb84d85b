import type { InjectionLanguage } from './language.ts'

export const portuguese: InjectionLanguage = {
  leads: ['por favor', 'e', 'agora', 'deves', 'voce deve', 'tens de', 'quero que', 'preciso que', 'simplesmente'],
  ignore: [
    ...[
      'ignor(?:e|a|em|ar|es)',
      'esque(?:ca|ce|cam|cer)(?:-se)?',
      'desconsider(?:e|a|em|ar)',
      'descart(?:e|a|em|ar)',
      'anul(?:e|a|ar)',
    ],
    ...[
      'desrespeit(?:e|a)',
      'nao (?:siga|sigas|obedeca|obedecas|leve em conta)',
      'deix(?:e|a) de (?:seguir|lado)',
      'passe por cima',
    ],
  ],
  scope: [
    ...[
      'anterior(?:es)?',
      'previ[ao]s?',
      'precedentes?',
      'tod[ao]s?',
      'tu[ao]s',
      'su[ao]s',
      'inicia(?:l|is)',
      'origina(?:l|is)',
      'acima',
      'do sistema',
      'que recebeu',
    ],
  ],
  instructions: [
    'instruc(?:ao|oes)',
    'ordens',
    'regras',
    'diretrizes',
    'diretivas',
    'orientacoes',
    'comandos',
    'restricoes',
    'mensagens? d[eo] sistema',
    'prompts?',
  ],
  toldModel: [
    '(?:tudo )?o que (?:te|lhe)s? (?:disseram|ensinaram|mandaram|ordenaram|(?:foi|tinha sido|havia sido) (?:dito|ensinado|ordenado))',
    'tudo o que (?:voce )?(?:sabe|aprendeu)\\b',
  ],
  containers: [
    'tudo (?:o que esta )?acima',
    '(?:a|esta|essa) (?:funcao|tabela)',
    '(?:o|este|esse) (?:texto|codigo|documento|resto)',
  ],
  conjunctions: ['e'],
  reveal: [
    ...[
      'mostr(?:e|a)(?:-me)?',
      'revel(?:e|a|ar)',
      'dig(?:a|a-me)',
      'diz(?:-me)?',
      'repit(?:a|e)',
      'repete',
      'imprim(?:a|e)',
      'escrev(?:a|e)',
      'compartilh(?:e|a)',
      'partilh(?:e|a)',
    ],
    ...[
      'copi(?:e|a)',
      'list(?:e|a)',
      'resum(?:a|e)',
      'traduz(?:a)?',
      'me (?:diga|mostre|conte)',
      'qua(?:l|is) (?:e|sao|eram)',
      'pode (?:mostrar|dizer|repetir|revelar|compartilhar)',
      'conte',
      'indi(?:que|ca)',
    ],
  ],
  prompt: [
    ...[
      '(?:teu|seu|o) (?:\\w{1,12} )?(?:system prompt|prompt (?:de sistema|do sistema|inicial|oculto|original))',
      'mensagem d[eo] sistema',
    ],
    ...[
      '(?:tuas|suas) (?:\\w{1,12} )?(?:instrucoes|diretrizes|regras|orientacoes)',
      'instrucoes (?:d[eo] sistema|iniciais|ocultas|internas|que recebeu)',
    ],
  ],
  password: [
    ...[
      '\\b(?:tua|sua) (?:senha|palavra-passe|palavra secreta|chave secreta)\\b',
      '\\b(?:teu|seu) codigo secreto\\b',
      '\\bqual e a (?:senha|palavra-passe|palavra secreta) ?\\?',
    ],
  ],
  unrestricted: [
    '\\b(?:sem|nao tem|livre de|nao possui) (?:nenhum[ao]? |quaisquer |qualquer |suas )?(?:restric|limit|filtro|censura|regras|etica|moral)',
  ],
  takeover: [
    '\\b(?:a partir de agora|de agora em diante|daqui em diante|agora (?:voce e|es|tu es)|finja (?:ser|que)|finge (?:ser|que))\\b',
  ],
}
