/**
 * Changes of a file's members, whatever its format: those that a recipe wants, and those that take them back. Entries
 * of a list are told apart by their `name`; a list of anything else is one value.
 */
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'

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
  /** SHA-256 of what was written, which may be a secret; null: the member was removed. */
  written: z.string().nullable(),
  /** How many names of the place were there. What lies between and is empty afterwards goes as well. */
  depth: z.number(),
  /**
   * A `value` goes where it still says what was written. A `frame` only makes a new file valid, and a `stamp` a new
   * object: they go where nothing else is left beside them. The client may have rewritten a stamp.
   */
  as: z.enum(['value', 'frame', 'stamp']),
})
export type Undo = z.infer<typeof undoSchema>

export interface Wanted {
  members: Members
  /** Members at the top that stay as they are, and that only make a new file valid. */
  keeps: readonly string[]
  /** Members that must not be there beside the wanted ones. One that is wanted as well is one value. */
  removes: readonly (readonly string[])[]
  /** Members that only make the new object around them valid. */
  stamps: readonly (readonly string[])[]
}

/**
 * The changes that make the wanted members stand there, and how each is taken back. Throws `usage`, which names the
 * file, where a member of another kind is in the way.
 */
export function changesTo(
  file: string,
  present: Members,
  { members, keeps, removes, stamps }: Wanted,
): { changes: Change[]; undo: Undo[] } {
  const changes: Change[] = []
  const undo: Undo[] = []
  const isNew = Object.keys(present).length === 0
  let now = present
  const set = (place: Place, value: unknown, as: Undo['as'] = 'value') => {
    const path = pathTo(now, place)
    const was = at(now, path)
    if (Bun.deepEquals(was, value)) return
    const depth = Math.min(depthOf(present, place), depthOf(now, place))
    const written = value === undefined ? null : hashOf(value)
    undo.push({ place, ...(was === undefined ? {} : { was }), written, depth, as })
    changes.push({ path, value })
    now = changed(now, [{ path, value }])
  }
  for (const place of removes) set([...place], undefined)
  for (const [place, value] of leavesOf(members, [], removes)) {
    const [first] = place
    const isKept = typeof first === 'string' && keeps.includes(first)
    if (isKept && Object.hasOwn(present, first)) continue
    for (const above of holdersOf(place)) {
      const kind = kindOf(at(now, pathTo(now, above)))
      const wanted = typeof place[above.length] === 'string' ? 'an object' : 'a list'
      if (kind === 'nothing') set(above, undefined)
      else if (kind !== wanted) throw inTheWay(file, above, kind, wanted)
    }
    const [kind, wanted] = [kindOf(at(now, pathTo(now, place))), kindOf(value)]
    if (kind !== 'nothing' && kind !== wanted) throw inTheWay(file, place, kind, wanted)
    const isStamp = holds(stamps, place) && depthOf(present, place) < place.length - 1
    set(place, value, isStamp ? 'stamp' : isKept && isNew ? 'frame' : 'value')
  }
  return { changes, undo }
}

/** The places above a place, the highest first. */
const holdersOf = (place: Place): Place[] => place.slice(1).map((_, index) => place.slice(0, index + 1))

const holds = (places: readonly (readonly string[])[], place: Place): boolean =>
  places.some((each) => Bun.deepEquals(each, place))

/** `nothing` also for YAML's `models:` without an entry. */
const kindOf = (value: unknown): string => {
  if (value === undefined || value === null) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  return isMembers(value) ? 'an object' : 'a plain value'
}

function inTheWay(file: string, place: Place, kind: string, wanted: string): Failure {
  const name = place.map((part) => (typeof part === 'string' ? part : `"${part.name}"`)).join('.')
  return new Failure('usage', {
    message: `${file} has ${kind} as its member ${name}, where ${wanted} belongs, so it is not changed: mend it, or move the file away, and repeat the command`,
  })
}

/**
 * The changes that put back what stood there. A member that no longer says what was written stays, and so do all
 * others. `frame` holds the changes that take what only made a new file valid: none where something else is left.
 */
export function changesBack(present: Members, undo: readonly Undo[]): { changes: Change[]; frame: Change[] } {
  const changes: Change[] = []
  let now = present
  const set = (place: Place, value: unknown) => {
    const change = { path: pathTo(now, place), value }
    changes.push(change)
    now = changed(now, [change])
  }
  const takeBack = ({ place, was, depth }: Undo) => {
    set(place, was)
    for (let length = place.length - 1; was === undefined && length > depth; length--) {
      const holder = at(now, pathTo(now, place.slice(0, length)))
      if (typeof holder !== 'object' || holder === null || Object.keys(holder).length > 0) break
      set(place.slice(0, length), undefined)
    }
  }
  const stands = ({ place, written }: Undo) => {
    const value = at(now, pathTo(now, place))
    return value === undefined ? written === null : hashOf(value) === written
  }
  const latestFirst = undo.toReversed()
  for (const each of latestFirst) if (each.as === 'value' && stands(each)) takeBack(each)
  const stamps = latestFirst.filter(({ as }) => as === 'stamp')
  for (const stamp of stamps) {
    const above = stamp.place.slice(0, -1)
    const holder = at(now, pathTo(now, above))
    const left = isMembers(holder) ? Object.keys(holder) : []
    const onlyStamps = left.every((name) => stamps.some(({ place }) => Bun.deepEquals(place, [...above, name])))
    if (onlyStamps && left.length > 0) takeBack(stamp)
  }
  const frames = latestFirst.filter((each) => each.as === 'frame' && stands(each))
  const onlyFrame = Object.keys(now).every((name) => frames.some(({ place }) => place[0] === name))
  return {
    changes,
    frame: onlyFrame ? frames.map(({ place }) => ({ path: pathTo(now, place), value: undefined })) : [],
  }
}

const hashOf = (value: unknown): string =>
  new Bun.CryptoHasher('sha256').update(JSON.stringify(value, ordered)).digest('hex')

/** Clients write the members of an object in an order of their own. */
const ordered = (_: string, value: unknown): unknown =>
  isMembers(value) ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) : value

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

/** What is set by itself; `whole` names objects that are one value, because a part of them would be of no use. */
function leavesOf(value: unknown, place: Place, whole: Wanted['removes']): [Place, unknown][] {
  if (Array.isArray(value) && value.length > 0 && value.every(hasName)) {
    return value.map((entry) => [[...place, { name: entry.name }], entry])
  }
  const entries = isMembers(value) ? Object.entries(value) : []
  if (entries.length === 0 || holds(whole, place)) return [[place, value]]
  return entries.flatMap(([name, below]) => leavesOf(below, [...place, name], whole))
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
