/**
 * Words beside a number that show whether it is a phone number, in the languages of most callers. They are compared
 * with folded text in lower case.
 */

const dialled = [
  ...['phone', 'telephone', 'tel', 'mobile', 'cell', 'cellphone', 'cellular', 'fax', 'landline'],
  ...['hotline', 'helpline', 'pager', 'voicemail', 'call', 'calls', 'called', 'calling', 'dial', 'ring', 'reach'],
  ...['reached', 'text', 'texts', 'sms', 'whatsapp', 'signal', 'viber', 'message', 'messages', 'answering', 'answer'],
  ...['contact', 'switchboard', 'extension', 'gsm', 'msisdn', 'texting'],
  ...['telefon', 'telefonnummer', 'handy', 'handynummer', 'mobil', 'mobilnummer', 'rufnummer', 'anrufen', 'durchwahl'],
  ...['ruf', 'rufe', 'rufen', 'natel', 'festnetz', 'erreichen', 'erreichbar', 'bel', 'bellen', 'telefoon'],
  ...['téléphone', 'téléphonique', 'portable', 'appeler', 'appelez', 'appelle', 'joindre', 'joignable', 'fixe', 'tél'],
  ...['teléfono', 'telefono', 'móvil', 'movil', 'celular', 'llama', 'llame', 'llámame', 'llamar', 'llámeme'],
  ...['telefone', 'telemóvel', 'ligue', 'ligar', 'liga', 'cellulare', 'chiama', 'chiamami', 'chiamare', 'telefonini'],
  ...['puhelin', 'puhelinnumero', 'telefonní', 'telefonu', 'telefonszám', 'numer', 'komórka', 'dzwoń', 'zadzwoń'],
  ...['тел', 'телефон', 'телефону', 'мобильный', 'позвоните', 'звоните', 'звонить', 'факс', 'τηλέφωνο', 'κινητό'],
  ...[
    '电话',
    '手机',
    '致电',
    '拨打',
    '传真',
    '電話',
    '電話番号',
    '携帯',
    '携帯電話',
    '手機',
    '전화',
    '전화번호',
    '휴대폰',
  ],
  ...['फ़ोन', 'फोन', 'मोबाइल', 'هاتف', 'جوال', 'الهاتف', 'اتصل', 'موبايل', 'טלפון', 'נייד', 'โทร', 'thoại'],
]

/** These words also mean places: they count only directly beside a number. */
const places = ['office', 'home', 'work', 'desk', 'main', 'direct', 'private', 'privat', 'bureau', 'büro', 'oficina']

const counted = [
  ...['order', 'invoice', 'account', 'acct', 'card', 'credit', 'debit', 'licence', 'license', 'passport', 'ssn'],
  ...['security', 'zip', 'postcode', 'postal', 'apt', 'suite', 'room', 'street', 'address', 'flight', 'ticket'],
  ...['case', 'tracking', 'serial', 'model', 'part', 'version', 'isbn', 'issn', 'ean', 'upc', 'iban', 'bic', 'routing'],
  ...['sort', 'tax', 'vat', 'reference', 'ref', 'policy', 'claim', 'employee', 'student', 'customer', 'batch'],
  ...['member', 'box', 'page', 'sku', 'item', 'lot', 'pin', 'id', 'timestamp', 'population', 'coordinates', 'total'],
  ...['amount', 'price', 'cost', 'usd', 'eur', 'transaction', 'receipt', 'barcode', 'imei', 'driver', 'identifier'],
  ...['commit', 'pid', 'bytes', 'offset', 'line', 'lines', 'row', 'rows', 'iteration', 'seed', 'epoch', 'date'],
]

/** Words of `dialled` that are common in other meanings: "each call", "the message". A quantity beside them stays one. */
const ambiguous: ReadonlySet<string> = new Set([
  ...['call', 'calls', 'called', 'calling', 'ring', 'reach', 'reached', 'text', 'texts', 'signal', 'message'],
  ...['messages', 'answer', 'answering', 'contact', 'extension', 'cell', 'portable', 'fixe', 'numer', 'liga', 'bel'],
])

/** Units after a number: it is then a quantity. No unit has one letter, because a word may begin like that. */
const units: ReadonlySet<string> = new Set([
  ...['ns', 'us', 'ms', 'msec', 'msecs', 'sec', 'secs', 'mins', 'hrs', 'nanoseconds', 'microseconds', 'milliseconds'],
  ...['millisecond', 'second', 'seconds', 'minutes', 'hours', 'bit', 'bits', 'byte', 'bytes', 'kb', 'mb', 'gb', 'tb'],
  ...['kib', 'mib', 'gib', 'tib', 'hz', 'khz', 'mhz', 'ghz', 'px', 'pixels', 'tokens', 'chars', 'characters', 'words'],
  ...[
    'lines',
    'rows',
    'items',
    'entries',
    'files',
    'requests',
    'iterations',
    'retries',
    'attempts',
    'users',
    'records',
  ],
])

/** `mentioned`: the only word that marks a phone number has other common meanings. */
export type NumberRole = 'dialled' | 'mentioned' | 'counted' | 'unsaid'

const asFolded = (words: readonly string[]): readonly string[] => words.map((word) => word.normalize('NFKC'))
const isPlace = new Set(asFolded(places))
const roles = new Map<string, NumberRole>([
  ...asFolded(dialled).map((word) => [word, ambiguous.has(word) ? 'mentioned' : 'dialled'] as const),
  ...asFolded(counted).map((word) => [word, 'counted'] as const),
])

const words = /[\p{L}\p{M}\p{N}]+/gu
const firstBehind = /^[ \-,(:]{0,3}([\p{L}\p{M}]+)(?![\p{N}])/u
const lastBeside = /([\p{L}\p{M}]+)[:.]?\s*$/u
/** Scripts without spaces between words. */
const unspaced = /电话|手机|致电|拨打|传真|電話|携帯|手機|전화|휴대폰|โทร/u
const money = /\p{Sc}\s*$/u
const general =
  /(?:^|[^\p{L}\p{M}\p{N}])(?:number|num|no|nr|nummer|número|numéro|numero|номер)[.:]?\s*(?:is|ist|es|est|è|é)?[:\s]*$/u

const isDialled = (role: NumberRole | undefined): boolean => role === 'dialled' || role === 'mentioned'

/** How many folded characters before and after a number are considered. */
export const charactersBefore = 48
export const charactersBehind = 16

/** Whether a parenthesis opens directly after an identifier, as in a call: `foo(`; not `tel(`. */
export function isArgument(before: string): boolean {
  const name = /([A-Za-z_]\w*)\($/.exec(before)?.[1]?.toLowerCase()
  return name !== undefined && !isDialled(roles.get(name)) && !isPlace.has(name)
}

/** The meaning that the words beside a number give it: the word directly after it, or the nearest before it. */
export function roleOf(before: string, after: string): NumberRole {
  const behind = firstBehind.exec(after.toLowerCase())?.[1] ?? ''
  if (isDialled(roles.get(behind)) || isPlace.has(behind)) return 'dialled'
  const text = before.toLowerCase()
  if (isPlace.has(lastBeside.exec(text)?.[1] ?? '')) return 'dialled'
  if (money.test(text)) return 'counted'
  let role: NumberRole = 'unsaid'
  for (const [word] of text.matchAll(words)) role = roles.get(word) ?? role
  if (units.has(behind) && role !== 'counted') return 'unsaid'
  if (role === 'unsaid' && (unspaced.test(text) || general.test(text))) return 'dialled'
  return role
}
