import type { InjectionLanguage } from './language.ts'

export const italian: InjectionLanguage = {
  leads: ['per favore', 'e', 'ora', 'adesso', 'devi', 'deve', 'voglio che', 'semplicemente', 'poi'],
  ignore: [
    ...[
      'ignor(?:a|i|ate|are|ino)',
      'dimentic(?:a|hi|ate|are)(?:ti)?',
      'trascur(?:a|i|ate|are)',
      'tralasci(?:a|ate|are)?',
      'scart(?:a|ate|are)',
    ],
    ...[
      'non (?:seguire|rispettare|considerare|tenere conto)',
      'disattend(?:i|ere)',
      'annull(?:a|are)',
      'smetti di seguire',
      'scavalca',
    ],
  ],
  scope: [
    ...[
      'precedent[ei]',
      'anterior[ei]',
      'tutt[eio]',
      'tu[eo]i?',
      'vostre',
      'iniziali',
      'originali',
      'di sopra',
      'qui sopra',
      'del sistema',
      'ricevut[eio]',
    ],
  ],
  instructions: [
    'istruzion[ei]',
    'indicazioni',
    'ordini',
    'regole',
    'direttive',
    'linee guida',
    'comandi',
    'restrizioni',
    'messagg(?:io|i) di sistema',
    'prompts?',
  ],
  toldModel: [
    '(?:tutto )?(?:quello|cio|quanto) che (?:ti|vi) (?:e stato|era stato|hanno) (?:detto|insegnato|ordinato|dato)',
    'tutto (?:quello|cio) che (?:sai|hai imparato)',
  ],
  containers: [
    'quanto (?:sopra|precede)',
    '(?:la|questa) (?:funzione|tabella)',
    '(?:il|questo) (?:testo|codice|documento|resto)',
  ],
  conjunctions: ['e', 'ed'],
  reveal: [
    ...[
      'mostra(?:mi|te|re)?',
      'rivela(?:mi|te|re)?',
      'dimmi',
      'dica',
      'ripeti(?:mi)?',
      'stampa',
      'scrivi(?:mi)?',
      'condividi',
      'copia',
      'elenca',
      'riassumi',
      'traduci',
      'svela(?:mi)?',
    ],
    ...[
      'qual[ei]? (?:e|sono|erano)',
      'puoi (?:mostrar|dir|ripeter|rivelar|condivider)(?:e|mi)',
      'fammi vedere',
      'indica(?:te)?',
      'cosa (?:dice|dicono|contiene)',
    ],
  ],
  prompt: [
    ...[
      '(?:il|tuo|vostro) (?:\\w{1,12} )?(?:system prompt|prompt (?:di sistema|del sistema|iniziale|nascosto|originale))',
      'messaggio di sistema',
    ],
    ...[
      '(?:tue|vostre) (?:\\w{1,12} )?(?:istruzioni|direttive|regole|linee guida|indicazioni)',
      'istruzioni (?:di sistema|del sistema|iniziali|nascoste|interne|che hai ricevuto)',
    ],
  ],
  password: [
    ...[
      "\\b(?:tua|vostra) (?:password|parola (?:segreta|d['’]ordine)|chiave segreta)\\b",
      "\\bqual e la (?:password|parola (?:segreta|d['’]ordine)) ?\\?",
    ],
  ],
  unrestricted: [
    '\\b(?:senza|non hai|libero da|privo di) (?:alcun[ao]? |nessun[ao]? |le tue )?(?:restrizion|limit|filtr|censur|regole|etica|morale|vincol)',
  ],
  takeover: ["\\b(?:d['’]ora in poi|da ora in poi|da adesso|ora sei|adesso sei|fingi (?:di|che)|fai finta di)\\b"],
}
