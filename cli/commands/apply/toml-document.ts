/** Parses a file of TOML into a document that knows where every value stands. */
import { parseDocument } from '@decimalturn/toml-patch'
import { Failure } from '../../../src/failure.ts'
import type { Path, Source } from './documents.ts'

/** What is used of the library's syntax tree, in which columns begin at 0. */
interface Place {
  readonly line: number
  readonly column: number
}
interface Node {
  readonly type: string
  readonly loc: { readonly start: Place }
  readonly key?: Key | { readonly item: Key }
  readonly value?: unknown
  readonly items?: readonly Node[]
  readonly item?: Node
}
interface Key {
  readonly loc: { readonly start: Place }
  readonly value: readonly string[]
}

/** Throws `usage` that names file, line and column of what cannot be parsed. */
export function tomlDocument(name: string, text: string): Source {
  const { tree, content } = parsed(name, text)
  const places = new Places(tree)
  return { name, content, position: (path, ofName = false) => places.find(path, ofName) }
}

function parsed(name: string, text: string): { tree: readonly Node[]; content: unknown } {
  try {
    const document = parseDocument(text, { integersAsBigInt: false })
    return { tree: document.cst, content: document.toJsObject }
  } catch (cause) {
    if (!(cause instanceof Error) || !('line' in cause && 'column' in cause)) throw cause
    // The first lines of the library's message show the place.
    const why = cause.message.split('\n').at(-1)
    const message = `${name}:${cause.line}:${Number(cause.column) + 1}: ${why}`
    throw new Failure('usage', { message, cause })
  }
}

/** Where names and values stand, by their paths. */
class Places {
  readonly #names = new Map<string, Place>()
  readonly #values = new Map<string, Place>()
  /** Of each list of tables, how many there are so far. */
  readonly #counts = new Map<string, number>()

  constructor(blocks: readonly Node[]) {
    for (const { type, loc, key, items = [], value } of blocks) {
      if (key === undefined) continue
      if (type === 'KeyValue') this.#addMember([], keyOf(key), value)
      else {
        const path = this.#tablePath(keyOf(key), type === 'TableArray')
        this.#note(path, loc.start, keyOf(key).loc.start)
        for (const item of items) if (item.key !== undefined) this.#addMember(path, keyOf(item.key), item.value)
      }
    }
  }

  /** `LINE:COLUMN`, of the nearest value around it where there is none. */
  find(path: Path, ofName: boolean): string | null {
    for (let length = path.length; length > 0; length -= 1) {
      const known = length === path.length && ofName ? this.#names : this.#values
      const place = known.get(keyText(path.slice(0, length)))
      if (place !== undefined) return `${place.line}:${place.column + 1}`
    }
    return null
  }

  /** The path that a header means: below a list of tables it means the last of them. */
  #tablePath({ value, loc }: Key, isOneOfList: boolean): Path {
    let path: Path = []
    for (const [index, name] of value.entries()) {
      path = [...path, name]
      this.#note(path, loc.start, loc.start)
      const count = this.#counts.get(keyText(path))
      const isNew = isOneOfList && index === value.length - 1
      if (isNew) this.#counts.set(keyText(path), (count ?? 0) + 1)
      if (isNew || count !== undefined) path = [...path, isNew ? (count ?? 0) : (count ?? 1) - 1]
    }
    return path
  }

  #addMember(around: Path, { value: names, loc }: Key, value: unknown): void {
    for (let length = 1; length < names.length; length += 1) {
      this.#note([...around, ...names.slice(0, length)], loc.start, loc.start)
    }
    if (isNode(value)) this.#addValue([...around, ...names], value, loc.start)
  }

  #addValue(path: Path, { type, loc, items = [] }: Node, name: Place): void {
    this.#note(path, loc.start, name)
    for (const [index, { item }] of items.entries()) {
      if (item === undefined) continue
      if (type === 'InlineArray') this.#addValue([...path, index], item, item.loc.start)
      else if (item.key !== undefined) this.#addMember(path, keyOf(item.key), item.value)
    }
  }

  #note(path: Path, value: Place, name: Place): void {
    const text = keyText(path)
    if (this.#values.has(text)) return
    this.#values.set(text, value)
    this.#names.set(text, name)
  }
}

const keyOf = (key: Key | { readonly item: Key }): Key => ('item' in key ? key.item : key)
const keyText = (path: Path): string => JSON.stringify(path)
const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && 'loc' in value
