/**
 * Changes of a file's members, whatever its format: those that a recipe wants, and those that take them back. Entries of
 * a list are told apart by their `name`; a list of anything else is one value.
 */
import { z } from 'zod'

export type Members = Readonly<Record<string, unknown>>

/** One step; several are done in order, because each may move the entries of a list. */
export interface Change {
  readonly path: readonly (string | number)[]
  /** Undefined: the member goes. */
  readonly value: unknown
}

/** Names on the way to a member; an object stands for the entry of a list. */
const placeSchema = z.array(z.union([z.string(), z.strictObject({ name: z.string() })]))
type Place = z.infer<typeof placeSchema>

/** How a change is taken back. */
export const undoSchema = z.strictObject({
  place: placeSchema,
  /** What stood there; absent: nothing. */
  was: z.unknown().optional(),
  /** How many names of the place were there. What lies between and is empty afterwards goes as well. */
  depth: z.number(),
})
export type Undo = z.infer<typeof undoSchema>

export interface Wanted {
  members: Members
  /** Members at the top that stay as they are. */
  keeps: readonly string[]
  /** Members that must not be there beside the wanted ones. */
  removes: readonly (readonly string[])[]
}

/** The changes that make the wanted members stand there, and how each is taken back. */
export function changesTo(present: Members, { members, keeps, removes }: Wanted): { changes: Change[]; undo: Undo[] } {
  const changes: Change[] = []
  const undo: Undo[] = []
  let now = present
  const set = (place: Place, value: unknown) => {
    const was = at(now, pathTo(now, place))
    if (Bun.deepEquals(was, value)) return
    undo.push({ place, ...(was === undefined ? {} : { was }), depth: depthOf(now, place) })
    const change = { path: pathTo(now, place), value }
    changes.push(change)
    now = changed(now, [change])
  }
  for (const place of removes) set([...place], undefined)
  for (const [place, value] of leavesOf(members, [])) {
    const [first] = place
    if (typeof first === 'string' && keeps.includes(first) && Object.hasOwn(present, first)) continue
    const inTheWay = holdersOf(place).find((above) => !mayHold(at(now, pathTo(now, above)), place[above.length]))
    if (inTheWay !== undefined) set(inTheWay, undefined)
    set(place, value)
  }
  return { changes, undo }
}

/** The places above a place, the highest first. */
const holdersOf = (place: Place): Place[] => place.slice(1).map((_, index) => place.slice(0, index + 1))

/** Whether a member can stand in a value: not in a text, or in nothing, as in YAML's `models:` without an entry. */
const mayHold = (value: unknown, part: Place[number] | undefined): boolean =>
  value === undefined || (typeof part === 'string' ? isMembers(value) : Array.isArray(value))

/** The changes that put back what stood there; other members stay as they are now. */
export function changesBack(present: Members, undo: readonly Undo[]): Change[] {
  const changes: Change[] = []
  let now = present
  const set = (place: Place, value: unknown) => {
    const change = { path: pathTo(now, place), value }
    if (Bun.deepEquals(at(now, change.path), value)) return
    changes.push(change)
    now = changed(now, [change])
  }
  for (const { place, was, depth } of undo.toReversed()) {
    set(place, was)
    for (let length = place.length - 1; was === undefined && length > depth; length--) {
      const holder = at(now, pathTo(now, place.slice(0, length)))
      if (typeof holder !== 'object' || holder === null || Object.keys(holder).length > 0) break
      set(place.slice(0, length), undefined)
    }
  }
  return changes
}

/** The members after the changes. */
export function changed(members: Members, changes: readonly Change[]): Members {
  return changes.reduce((now, { path, value }) => {
    const after = withValue(now, path, value)
    return isMembers(after) ? after : now
  }, members)
}

function withValue(holder: unknown, [part, ...rest]: Change['path'], value: unknown): unknown {
  if (part === undefined) return value
  if (typeof part === 'number') {
    const list: readonly unknown[] = Array.isArray(holder) ? holder : []
    const below = withValue(list[part], rest, value)
    return below === undefined ? list.toSpliced(part, 1) : list.toSpliced(part, 1, below)
  }
  const { [part]: before, ...others }: Members = isMembers(holder) ? holder : {}
  const below = rest.length > 0 && value === undefined && before === undefined ? before : withValue(before, rest, value)
  return below === undefined ? others : { ...others, [part]: below }
}

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)

const hasName = (value: unknown): value is { name: string } => isMembers(value) && typeof value.name === 'string'

function leavesOf(value: unknown, place: Place): [Place, unknown][] {
  if (Array.isArray(value) && value.length > 0 && value.every(hasName)) {
    return value.map((entry) => [[...place, { name: entry.name }], entry])
  }
  const entries = isMembers(value) ? Object.entries(value) : []
  if (entries.length === 0) return [[place, value]]
  return entries.flatMap(([name, below]) => leavesOf(below, [...place, name]))
}

/** The path of a place: an entry that is not in its list is the next one. */
function pathTo(members: Members, place: Place): Change['path'] {
  let holder: unknown = members
  return place.map((part) => {
    const list: readonly unknown[] = Array.isArray(holder) ? holder : []
    const found =
      typeof part === 'string' ? part : list.findIndex((entry) => hasName(entry) && entry.name === part.name)
    const step = found === -1 ? list.length : found
    holder = below(holder, step)
    return step
  })
}

const at = (members: Members, path: Change['path']): unknown => path.reduce<unknown>(below, members)

function below(holder: unknown, step: string | number): unknown {
  if (typeof step === 'number') return Array.isArray(holder) ? holder[step] : undefined
  return isMembers(holder) && Object.hasOwn(holder, step) ? holder[step] : undefined
}

function depthOf(members: Members, place: Place): number {
  const path = pathTo(members, place)
  const missing = path.findIndex((_, index) => at(members, path.slice(0, index + 1)) === undefined)
  return missing === -1 ? path.length : missing
}
