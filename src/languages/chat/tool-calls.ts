/**
 * Finds the call that each element of a delta's `tool_calls` belongs to, in one choice. Providers number calls, or
 * give them an id, or leave both out and mean the call at that position. Some switch methods midway, number every
 * call 0, or make up an id for each delta. Clients join by number, by id or by position. If these agree, or only one
 * is given, the call is clear. If they do not, clients join differently, and the delta is marked as contradicting.
 */
import { isObject, type JsonObject, textOf } from '../reading/json-value.ts'

export interface Call {
  /**
   * Its part of its channels' names: `tool_calls[0]`, `tool_calls#0`; `.1` is added if another call had that place
   * before.
   */
  readonly key: string
  /** Its place in a delta. */
  place: string
  index: number | null
  id: string | null
  /** The name so far. */
  name: string
  /** The last character of its arguments that is not white space; empty if none came. */
  end: string
}

export interface Taken {
  call: Call
  /** The call whose place it took, which ends. */
  before: Call | null
  contradicts: boolean
}

/** The identity that one element gives. */
interface Said {
  position: number
  index: number | null
  id: string | null
  name: string | null
  /** It brings some of its arguments. */
  hasArguments: boolean
}

export class ChatCalls {
  readonly #byIndex = new Map<number, Call>()
  readonly #byId = new Map<string, Call>()
  /** The last call at each position. */
  readonly #byPosition = new Map<number, Call>()
  #begun = 0

  take(element: JsonObject, position: number): Taken {
    const index = typeof element.index === 'number' && Number.isSafeInteger(element.index) ? element.index : null
    const said = { position, index, id: textOf(element.id) || null, ...calledBy(element) }
    const taken = index === null ? this.#unnumbered(said) : this.#numbered(said, index)
    const { call } = taken
    if (said.name !== null && call.name !== said.name) call.name += said.name
    if (index !== null && call.index === null) this.#number(call, index)
    if (said.id !== null && call.id === null) {
      call.id = said.id
      if (!this.#byId.has(said.id)) this.#byId.set(said.id, call)
    }
    this.#byPosition.set(position, call)
    return taken
  }

  #numbered(said: Said, index: number): Taken {
    const known = this.#byIndex.get(index)
    const sameId = said.id === null ? undefined : this.#byId.get(said.id)
    if (known !== undefined) {
      if (isAnother(known, said)) return this.#begin(said, known, known.end !== '}' || !said.hasArguments)
      return {
        call: known,
        before: null,
        contradicts: sameId !== undefined && sameId !== known && known.id !== said.id,
      }
    }
    if (sameId !== undefined) {
      if (sameId.index === null) return same(sameId)
      return this.#begin(said, null, said.name === null || said.name === sameId.name)
    }
    const there = this.#byPosition.get(said.position)
    if (there === undefined || there.index !== null || isAnother(there, said)) return this.#begin(said, null, false)
    return said.position === index ? same(there) : this.#begin(said, null, said.name === null)
  }

  #unnumbered(said: Said): Taken {
    const there = this.#byPosition.get(said.position)
    if (said.id !== null) {
      const sameId = this.#byId.get(said.id)
      if (sameId !== undefined) return same(sameId)
      if (there === undefined) return this.#begin(said, null, false)
      if (there.index !== null && said.name === null) return { call: there, before: null, contradicts: true }
      return there.id === null && !isAnother(there, said) ? same(there) : this.#begin(said, there, false)
    }
    const numbered = this.#byIndex.get(said.position)
    const known = there ?? numbered
    if (known === undefined) return this.#begin(said, null, this.#begun > 0 && said.name === null)
    if (isAnother(known, said)) return this.#begin(said, known, known.end !== '}' || !said.hasArguments)
    return { call: known, before: null, contradicts: numbered !== undefined && numbered !== known }
  }

  #begin({ position, index }: Said, before: Call | null, contradicts: boolean): Taken {
    const place = index === null ? `tool_calls#${position}` : `tool_calls[${index}]`
    const key = before === null ? place : `${place}.${this.#begun}`
    const call: Call = { key, place, index: null, id: null, name: '', end: '' }
    this.#begun++
    if (before?.index === index && index !== null) this.#byIndex.delete(index)
    return { call, before, contradicts }
  }

  #number(call: Call, index: number): void {
    call.index = index
    call.place = `tool_calls[${index}]`
    if (!this.#byIndex.has(index)) this.#byIndex.set(index, call)
  }
}

const same = (call: Call): Taken => ({ call, before: null, contradicts: false })

/**
 * Whether an element at a call's place begins another call: it has a name, and its id or name differs from the
 * call's. No client can join the two if the first call's arguments are complete and the second brings its own:
 * joined, they are not valid JSON.
 */
function isAnother(call: Call, { id, name }: Said): boolean {
  if (name === null) return false
  if (id !== null && call.id !== null && id !== call.id) return call.name !== ''
  return call.end !== '' && call.name !== '' && call.name !== name
}

function calledBy({ function: called, custom }: JsonObject): Pick<Said, 'name' | 'hasArguments'> {
  const named = isObject(called) ? called : custom
  if (!isObject(named)) return { name: null, hasArguments: false }
  const given = textOf(named.arguments ?? named.input) ?? ''
  return { name: textOf(named.name) || null, hasArguments: given.trim() !== '' }
}
