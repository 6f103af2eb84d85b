/**
 * Finds the texts in a part of a body or frame: every string at any depth, except those known to hold no text. So a
 * field that a provider invents is inspected like any other (inspection/README.md), and excluded strings are known to
 * be harmless (`known-labels.ts`): labels, ids, and encoded bytes, which no text policy could read, except files that
 * are text (`encoded-text.ts`). Names, of tools above all, are texts, because a model writes them. A label with
 * unexpected words is read like a name.
 *
 * Longer than most files: one walk knows every form of text, and how each is put back.
 */

import { isExactNumber, isNumber, parseDistinctly } from '../../../lib/json/exact-json.ts'
import { isRepetitive } from '../../../lib/json/json-members.ts'
import { isObject, type JsonObject } from '../json-value.ts'
import { fileText, withFileText } from './encoded-text.ts'
import { isEncodedUrl, isFreelyNamed, isLabel, isLogprobs, saysNothing } from './known-labels.ts'
import { unsignDetail } from './signed-reasoning.ts'
import { stepOfName } from './text-paths.ts'
import type { TextKind, TextSlot } from './text-slot.ts'

/** The types that hold bytes as `data`: files, and thinking that only its provider can read. */
const typesOfData: ReadonlySet<unknown> = new Set(['base64', 'redacted_thinking', 'reasoning.encrypted'])

/** The types of parts that hold sound as `audio`. */
const soundTypes: ReadonlySet<unknown> = new Set(['input_audio', 'output_audio', 'audio'])

/** Whether a member is never a text, and contains none. */
function isNoText(key: string, value: unknown, holder: JsonObject, parentKey: string): boolean {
  if (typeof value !== 'string') return isLogprobs(key, parentKey)
  if (key === 'data') {
    const isBytes = typesOfData.has(holder.type) || parentKey.endsWith('audio') || parentKey === 'inlineData'
    return isBytes && saysNothing(key, value)
  }
  if (key === 'audio') return soundTypes.has(holder.type) && saysNothing('data', value)
  if (key === 'result') return holder.type === 'image_generation_call' && saysNothing(key, value)
  return key === 'url' || key === 'image_url' ? isEncodedUrl(value) : saysNothing(key, value)
}

const names = new Set(['name', 'server_label', 'server_name'])
const reasoning = /reason|think/

/** The kind of a member's texts, if its name defines it; otherwise the kind of the texts around it. */
function kindOf(key: string, { key: parentKey, kind: around }: Pick<Around, 'key' | 'kind'>): TextKind {
  if (key === 'arguments' || key === 'partial_json') return isFreelyNamed(parentKey) ? around : 'tool_arguments'
  if (key === 'refusal') return 'refusal'
  if (key === 'tool_result' || key === 'functionResponse') return 'tool_result'
  if (names.has(key) || isLabel(key)) return 'name'
  return reasoning.test(key) ? 'reasoning' : around
}

/** Arguments that a body holds as an object are one text, their JSON, because the model writes the names in it too. */
export const isArgumentsObject = (key: string, value: unknown, holder: JsonObject): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (key === 'arguments' || ((key === 'input' || key === 'args') && isCall(value, holder)))

/** Whether this input belongs to a called tool: one of messages or Gemini, or a custom one of chat or responses. */
const isCall = (input: object, { type, name }: JsonObject): boolean =>
  typeof type === 'string'
    ? /(?:tool_use|_call)$/.test(type)
    : type === undefined && typeof name === 'string' && !Array.isArray(input)

export interface FoundText {
  /**
   * Its place: `tool_calls[1]/function/arguments`, the `index` in brackets; `annotations#0/title`, a position;
   * `content~text/text`, a part of a type, at any position.
   */
  readonly place: string
  readonly kind: TextKind
  readonly text: string
  /** It is in an array's element without an `index`, or is a name outside a delta: nothing ever continues it. */
  readonly alone: boolean
  put(text: string): void
}

/** A string of an object. */
class StringText implements FoundText {
  readonly place: string
  readonly kind: TextKind
  readonly text: string
  readonly alone: boolean
  readonly #holder: JsonObject
  readonly #key: string
  readonly #isDetail: boolean

  constructor(holder: JsonObject, key: string, text: string, around: Around) {
    this.place = placeOf(key, around)
    this.kind = kindOf(key, around)
    this.text = text
    this.alone = isAlone(key, around)
    this.#holder = holder
    this.#key = key
    this.#isDetail = around.key === 'reasoning_details' && this.kind !== 'name'
  }

  put(replacement: string): void {
    const [holder, key] = [this.#holder, this.#key]
    if (replacement === '' && this.kind === 'name' && !this.alone) {
      // An empty name in a delta is left out: some clients take the last name they get, empty or not.
      delete holder[key]
      return
    }
    const isOther = replacement !== this.text
    holder[key] = this.kind === 'tool_arguments' && isOther ? withDistinctNames(replacement) : replacement
    // A provider refuses signed thinking if the text does not match its signature.
    if (key === 'thinking' && isOther) delete holder.signature
    if (this.#isDetail && isOther) unsignDetail(holder)
  }
}

const deepest = 64

interface Around {
  place: string
  key: string
  kind: TextKind
  alone: boolean
  joinParts: boolean
  files: boolean
  depth: number
}

const nothing: ReadonlySet<string> = new Set()

export interface SearchOptions {
  /** The kind of texts that no name defines. */
  kind?: TextKind
  /**
   * As in a stream's deltas: typed parts of a text (`content: [{type: 'text', text}]`) are pieces of one text, and
   * names may continue.
   */
  joinParts?: boolean
  /** For whole bodies: texts in base64 and members named like log probabilities are read. */
  files?: boolean
  /** Outermost members to leave out. */
  except?: ReadonlySet<string>
  /** An outermost member whose objects are read separately: they are left out, and everything else in it is read. */
  listed?: string
}

/** Returns every text in an object, in order. Throws `RangeError` if it is nested too deeply. */
export function textsIn(value: JsonObject, options: SearchOptions = {}): FoundText[] {
  const { except = nothing, listed = null } = options
  const found: FoundText[] = []
  walkObject(value, outside(options), found, { except, listed })
  return found
}

/** Returns every text in one member of an object, in any shape, as `textsIn` does. */
export function textsOfMember(holder: JsonObject, key: string, options: SearchOptions = {}): FoundText[] {
  const found: FoundText[] = []
  walkMember(holder, key, outside(options), found, key === options.listed)
  return found
}

const outside = ({ kind = 'content', joinParts = false, files = false }: SearchOptions): Around => ({
  place: '',
  key: '',
  kind,
  alone: false,
  joinParts,
  files,
  depth: 0,
})

interface Outermost {
  readonly except: ReadonlySet<string>
  /** Null, which is no member's name. */
  readonly listed: string | null
}

const everything: Outermost = { except: nothing, listed: null }

function walkObject(holder: JsonObject, around: Around, found: FoundText[], { except, listed } = everything): void {
  if (around.depth > deepest) throw new RangeError('An answer is nested too deep to be inspected')
  for (const key in holder) if (!except.has(key)) walkMember(holder, key, around, found, key === listed)
}

function walkMember(holder: JsonObject, key: string, around: Around, found: FoundText[], isListed: boolean): void {
  const value = holder[key]
  if (value === null || typeof value === 'boolean' || isNumber(value)) return
  // Nothing removes log probabilities from a request, so members of that name are read.
  if (!isNoText(key, value, holder, around.key) || (around.files && typeof value !== 'string')) {
    if (typeof value === 'string') found.push(new StringText(holder, key, value, around))
    else if (isArgumentsObject(key, value, holder) && !isFreelyNamed(around.key))
      found.push(argumentsText(holder, key, value, within(key, around)))
    else if (Array.isArray(value)) walkArray(value, within(key, around), found, isListed)
    else if (isObject(value)) walkObject(value, within(key, around), found)
  }
  // After the text that contains it, so that its change is the last.
  if (around.files) addFile(holder, key, around, found)
}

/** The surroundings of a member's value. */
const within = (key: string, around: Around): Around => ({
  place: placeOf(key, around),
  key,
  kind: kindOf(key, around),
  alone: isAlone(key, around),
  joinParts: around.joinParts,
  files: around.files,
  depth: around.depth + 1,
})

const placeOf = (key: string, { place }: Around): string =>
  place === '' ? stepOfName(key) : `${place}/${stepOfName(key)}`

const isAlone = (key: string, { alone, joinParts }: Around): boolean =>
  alone || isLabel(key) || (names.has(key) && !joinParts)

/** Adds the text of a member's file, if it is text. */
function addFile(holder: JsonObject, key: string, { place, kind }: Around, found: FoundText[]): void {
  const value = holder[key]
  const text = typeof value === 'string' ? fileText(holder, key, value) : null
  if (text === null) return
  const put = (changed: string) => {
    if (changed !== text) holder[key] = withFileText(holder[key], changed)
  }
  found.push({ place: `${place}/${stepOfName(key)}`, kind, alone: true, text, put })
}

function walkArray(values: unknown[], around: Around, found: FoundText[], isListed = false): void {
  if (around.depth > deepest) throw new RangeError('An answer is nested too deep to be inspected')
  const { key, kind, joinParts, files } = around
  for (let position = 0; position < values.length; position++) {
    const value = values[position]
    if (typeof value === 'string') {
      if (!isEncodedUrl(value)) found.push(new ElementText(values, position, value, around))
      continue
    }
    if (isListed && isObject(value)) continue
    const step = stepOf(value, position, around)
    const place = around.place + step
    const alone = around.alone || step.startsWith('#')
    const inside: Around = { place, key, kind, alone, joinParts, files, depth: around.depth + 1 }
    if (Array.isArray(value)) walkArray(value, inside, found)
    else if (isObject(value) && !isExactNumber(value)) walkObject(value, inside, found)
  }
}

const partOfText = /^(?:text|thinking|refusal|output_text|summary_text|reasoning(?:[._]text)?)$/

/** An array element's step in a place. */
export function stepOf(value: unknown, position: number, { joinParts }: Pick<Around, 'joinParts'>): string {
  if (!isObject(value)) return `#${position}`
  if (Number.isSafeInteger(value.index)) return `[${value.index}]`
  const { type } = value
  return joinParts && typeof type === 'string' && partOfText.test(type) ? `~${type}` : `#${position}`
}

/** A string of an array. */
class ElementText implements FoundText {
  readonly place: string
  readonly kind: TextKind
  readonly text: string
  readonly alone = true
  readonly #values: unknown[]
  readonly #position: number

  constructor(values: unknown[], position: number, text: string, { place, kind }: Around) {
    this.place = `${place}#${position}`
    this.kind = kind
    this.text = text
    this.#values = values
    this.#position = position
  }

  put(replacement: string): void {
    this.#values[this.#position] = replacement
  }
}

const argumentsText = (holder: JsonObject, key: string, value: unknown, { place }: Around): FoundText => ({
  place,
  kind: 'tool_arguments',
  alone: true,
  text: JSON.stringify(value),
  put(replacement) {
    holder[key] = replacedArguments(replacement)
  },
})

/** Writes a policy's change to arguments that the body holds as an object. */
export function replacedArguments(text: string): unknown {
  try {
    return parseDistinctly(text)
  } catch {
    // The policy's result is not valid JSON: a refused text is better than the original arguments.
    return text
  }
}

/** Arguments that are a whole text: names that a policy made equal are made distinct. */
function withDistinctNames(text: string): string {
  try {
    return isRepetitive(text, JSON.parse(text)) ? JSON.stringify(parseDistinctly(text)) : text
  } catch {
    // A part of arguments, or invalid JSON: its reader has to handle the joined value.
    return text
  }
}

/** The same text as one of another kind. */
export const asKind = (found: FoundText, kind: TextKind): FoundText => ({
  place: found.place,
  kind,
  text: found.text,
  alone: found.alone,
  put: (text) => found.put(text),
})

/** The same text; `also` runs after each replacement. */
export const whereAltered = (found: FoundText, altered: () => void): FoundText => ({
  ...asKind(found, found.kind),
  put(text) {
    found.put(text)
    if (text !== found.text) altered()
  },
})

/** The place and role of slots. `onReplace` removes what repeats a replaced text. */
interface Owner {
  readonly member: string
  readonly role: string | null
  readonly message?: object
  readonly onReplace?: () => void
}

/**
 * A text that describes another kind of part, such as the address of an image: a model does not read it as a text part.
 */
const besideText = /(?:^|\/)(?:url|image_url|file_url|file_id|filename|title|detail|format|media_type)$/

/** A text that was found, as a slot. */
export class FoundSlot implements TextSlot {
  readonly member: string
  readonly kind: TextKind
  readonly role: string | null
  readonly text: string
  readonly message?: object
  readonly #found: FoundText
  readonly #owner: Owner

  constructor(found: FoundText, owner: Owner) {
    this.member = owner.member
    this.kind = found.kind
    this.role = owner.role
    this.text = found.text
    if (owner.message !== undefined && !besideText.test(found.place)) this.message = owner.message
    this.#found = found
    this.#owner = owner
  }

  replace(replacement: string): void {
    this.#found.put(replacement)
    this.#owner.onReplace?.()
  }
}

/** The texts of a body's member as slots. */
export const slotsOf = (texts: readonly FoundText[], owner: Owner): TextSlot[] =>
  texts.map((found) => new FoundSlot(found, owner))

/** Characters of all texts in a value, without creating slots: for estimates. */
export function textLength(value: unknown, key = '', depth = 0): number {
  if (typeof value === 'string') return value.startsWith('data:') ? 0 : value.length
  if (typeof value !== 'object' || value === null || depth > deepest) return 0
  let length = 0
  if (Array.isArray(value)) for (const element of value) length += textLength(element, key, depth + 1)
  else if (isObject(value)) {
    for (const name in value) {
      const inner = value[name]
      if (!isNoText(name, inner, value, key)) length += textLength(inner, name, depth + 1)
    }
  }
  return length
}
