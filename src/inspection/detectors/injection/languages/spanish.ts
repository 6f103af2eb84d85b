import type { InjectionLanguage } from './language.ts'

export const spanish: InjectionLanguage = {
  leads: ['por favor', 'y', 'ahora', 'debes', 'tienes que', 'quiero que', 'necesito que', 'simplemente', 'primero'],
  ignore: [
    ...['ignor(?:a|e|ad|en|es|ar|emos)', 'olvid(?:a|e|ad|en|es|ar)(?:te|se|os)?', 'descart(?:a|e|ad|en|ar)'],
    ...['omit(?:e|a|id|an|ir)', 'haz caso omiso', 'haga caso omiso', 'pas(?:a|e) por alto', 'desatiend(?:e|a)'],
    ...['no (?:hagas caso|sigas|obedezcas|tengas en cuenta)', 'deja de (?:seguir|obedecer)', 'anul(?:a|e|ar)'],
  ],
  scope: [
    ...['anterior(?:es)?', 'previ[ao]s?', 'precedentes?', 'tod[ao]s?', 'tus?', 'sus', 'iniciales', 'originales'],
    ...['de arriba', 'del sistema', 'que (?:te|le) (?:han|dieron|di)', 'hasta ahora', 'recibidas'],
  ],
  instructions: [
    ...['instruccion(?:es)?', 'indicacion(?:es)?', 'ordenes', 'reglas', 'directrices', 'directivas', 'normas'],
    ...['restricciones', 'pautas', 'mensajes? del sistema', 'prompts?'],
  ],
  toldModel: [
    '(?:todo )?lo que (?:te|le|os|se te|se le) (?:dijeron|dieron|ensenaron|indicaron|ordenaron|(?:ha|han) (?:dicho|dado|ensenado|indicado|ordenado))',
    'todo lo que (?:sabes|aprendiste|has aprendido)',
  ],
  containers: [
    '(?:todo )?lo (?:anterior|de arriba)',
    '(?:la|esta) (?:funcion|tabla)',
    '(?:el|este) (?:texto|codigo|documento|resto)',
  ],
  conjunctions: ['y', 'e'],
  reveal: [
    ...[
      'muestr(?:a|e)(?:me|nos)?',
      'revel(?:a|e|ar)(?:me|nos)?',
      'dime',
      'diga(?:me)?',
      'repit(?:e|a)(?:me)?',
      'imprim(?:e|a|ir)',
    ],
    ...[
      'escrib(?:e|a)(?:me)?',
      'cuenta(?:me)?',
      'comparte',
      'copia',
      'enumera',
      'resume',
      'traduce',
      'indi(?:ca|que)',
      'ensena(?:me)?',
      'cual(?:es)? (?:es|son)',
      'que (?:dicen?|contienen?)',
    ],
    ...['pued(?:es|e) (?:mostrar|decir|repetir|revelar|compartir|ensenar)(?:me)?', '(?:mostrar|decir|repetir)(?:me)?'],
  ],
  prompt: [
    ...['(?:tus?|sus?|las|el) (?:\\w{1,12} )?(?:system prompt|prompt (?:de(?:l)? sistema|inicial|oculto|original))'],
    ...[
      '(?:tus|sus) (?:\\w{1,12} )?(?:instrucciones|directrices|reglas|indicaciones|pautas)',
      'mensaje de(?:l)? sistema',
    ],
    ...['instrucciones (?:de(?:l)? sistema|iniciales|ocultas|internas|que (?:te|le) (?:dieron|han dado))'],
  ],
  password: [
    ...['\\b(?:tu|su) (?:contrasena|clave (?:secreta|de acceso)|palabra secreta|codigo secreto|password)\\b'],
    ...['\\bcual es (?:la|el) (?:contrasena|clave secreta|codigo secreto|password) ?\\?'],
  ],
  unrestricted: [
    '\\b(?:sin|no tienes|libre de|carece de) (?:ningun[ao]? |tus |mas )?(?:restriccion|limit|filtro|censura|reglas|etica|moral|normas)',
  ],
  takeover: ['\\b(?:a partir de ahora|desde ahora|de ahora en adelante|ahora eres|finge (?:ser|que)|actua como si)\\b'],
}
