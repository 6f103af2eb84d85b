/**
 * Compares what files ask for with what is there, and says what is to be done: nothing is changed here. A record is
 * found by its name. Fields that a file leaves out become those of a new record, unless the kind keeps them; secrets
 * are compared by whether they are there.
 */
import { asFailure, Failure } from '../../../src/failure.ts'
import type { Installation } from './installation.ts'
import { type Call, entrySchema, type Kind, masked, presentEntry, type Shown, whole } from './kind.ts'
import { kinds as allKinds } from './kinds/kinds.ts'
import { type Entry, entryMember, replaced } from './places.ts'
import { type SecretReader, secretReference } from './secret-reference.ts'
import { bodyNames, Faults, faultLine, newBody, pathInFile, pathOfParam, type Wanted, type Wish } from './wanted.ts'

export type Changes = Readonly<Record<string, { from: unknown; to: unknown }>>

export interface Step {
  readonly action: 'create' | 'update' | 'delete' | 'unchanged'
  readonly kind: Kind
  readonly name: string
  /** Null for a record that is to be made. */
  readonly id: string | null
  /** What differs, by the file's fields. Without secrets. */
  readonly changes: Changes
  /** A new record as its file says it, with secrets hidden. */
  readonly made: Entry | null
  /** The calls that bring it about; secrets are read for them. */
  calls(secrets: SecretReader): Promise<Call[]>
  /** What the API refuses, with the place in the file that says it; null where no file does. */
  refused(param: string | null, message: string): string | null
  /** Calls after those of all records that are made: what refers to records of the same kind. */
  readonly later: readonly Call[]
}

interface PlanOptions {
  /** Deletes records of the kinds that files list, where no file names them. */
  readonly prune: boolean
  /** Only records with this label are deleted, of whatever kind; the records of the files get it. */
  readonly label: string | null
  /** Secrets are sent where nothing else differs, too. */
  readonly secrets: boolean
}

/** What stands for the id of a record until it is made: the control plane puts the id in its place. */
const pendingId = (kind: Kind, name: string): string =>
  kind.choosesId ? name : `urn:gatehouse:created:${pendingKey(kind, name)}`

export const pendingKey = ({ member }: Kind, name: string): string => `${member}:${encodeURIComponent(name)}`

/** The label that a record is to have; null takes it away. */
export interface Label {
  readonly path: string
  readonly id: string
  readonly label: string | null
}

export interface Plan {
  readonly steps: readonly Step[]
  readonly labels: readonly Label[]
}

/** Everything that is to be done, in its order. Throws `usage` with every fault. */
export async function planOf(
  { entries, kinds }: Wish,
  installation: Installation,
  { prune, label, secrets }: PlanOptions,
): Promise<Plan> {
  await installation.load(prune && label !== null ? allKinds : kinds)
  if (label !== null) await installation.loadLabels()
  const faults = new Faults()
  const ordered = inOrder(entries)
  for (const { kind, name } of ordered) {
    if (presentOf(kind, name, installation) === undefined) installation.plan(kind, name, pendingId(kind, name))
  }
  const steps = ordered.map((wanted) => stepOf(wanted, { installation, faults, secrets }))
  if (label !== null) requireLabel(ordered, label, installation, faults)
  faults.end()
  const scope = label === null ? kinds : new Set(allKinds)
  const gone = prune ? deletions({ entries, kinds: scope }, installation, label) : []
  return {
    steps: [...steps, ...gone],
    labels: label === null ? [] : labelsOf([...steps, ...gone], label, installation),
  }
}

/** A record belongs to the files of one label. */
function requireLabel(ordered: readonly Wanted[], label: string, installation: Installation, faults: Faults): void {
  for (const { kind, name, source, at } of ordered) {
    const record = presentOf(kind, name, installation)
    const other = record === undefined ? null : installation.labelOf(kind, kind.idOf(record))
    if (other === null || other === label) continue
    faults.add(
      source,
      at,
      `The ${kind.one} "${name}" belongs to files with the label ${other}: take it out of one of both`,
    )
  }
}

const labelsOf = (steps: readonly Step[], label: string, installation: Installation): Label[] =>
  steps.flatMap(({ action, kind, name, id }) => {
    const wanted = action === 'delete' ? null : label
    if (id !== null && installation.labelOf(kind, id) === wanted) return []
    return [{ path: kind.path, id: id ?? pendingId(kind, name), label: wanted }]
  })

/** What others refer to comes first; otherwise the order of the files. */
const inOrder = (entries: readonly Wanted[]): Wanted[] =>
  entries.toSorted((one, other) => one.kind.order - other.kind.order)

const presentOf = (kind: Kind, name: string, installation: Installation): Shown | undefined =>
  installation.records(kind).find((record) => kind.nameOf(record) === name)

interface StepContext {
  readonly installation: Installation
  readonly faults: Faults
  readonly secrets: boolean
}

function stepOf(wanted: Wanted, { installation, faults, secrets }: StepContext): Step {
  const { kind, name, entry, source, at } = wanted
  const record = presentOf(kind, name, installation)
  const desired = whole(kind, entry)
  const present = record === undefined ? null : presentFor(desired, { kind, record, installation })
  requireReferences(wanted, installation, faults, (field) => present === null || differs(field, desired, present))
  const refused = (param: string | null, message: string) =>
    faultLine(source, [...at, ...pathInFile(kind, pathOfParam(param))], message)
  const common = { kind, name, changes: {}, made: null, later: [], refused }
  const deferred = deferredFields(wanted, installation)
  const deferredCalls = (id: string): Call[] =>
    deferred.length === 0 ? [] : [patchOf(kind, id, bodyNames(kind, partOf(kind, entry, deferred)))]
  const further = (present: Entry | null, id: string) =>
    kind.more({ wanted: entry, present, id, idOf: (path, called) => installation.idOf(path, called) })
  if (record === undefined || present === null) {
    return {
      ...common,
      action: 'create',
      id: null,
      made: masked(kind, asWritten(wanted)),
      later: deferredCalls(pendingId(kind, name)),
      calls: async (reader) => {
        const body = newBody(kind, await bodyOf(without(entry, deferred), wanted, installation, reader))
        return [{ method: 'POST', path: kind.path, body }, ...further(null, pendingId(kind, name))]
      },
    }
  }
  const id = kind.idOf(record)
  const changes = changesOf(kind, { entry, desired, present })
  for (const [field, { from, to }] of Object.entries(changes)) {
    if (kind.changeable.has(field)) continue
    const message = `The ${kind.one} "${name}" has ${shown(from)}, which cannot be changed to ${shown(to)}: delete it first, or choose another name`
    faults.add(source, [...at, field], message)
  }
  const resent = secrets && secretFields(kind).some((field) => entry[field] !== undefined)
  if (Object.keys(changes).length === 0 && !resent) return { ...common, action: 'unchanged', id, calls: async () => [] }
  const changed = Object.keys(changes)
  const sent = [
    ...changed,
    ...(resent || changed.some((field) => kind.secretsWith.has(field)) ? secretFields(kind) : []),
  ]
  const part = partOf(
    kind,
    entry,
    sent.filter((field) => changed.includes(field) || entry[field] !== undefined),
  )
  const version = Number(record.version)
  return {
    ...common,
    action: 'update',
    id,
    changes,
    later: changed.some((field) => deferred.includes(field)) ? deferredCalls(id) : [],
    async calls(reader) {
      const body = await bodyOf(without(part, deferred), wanted, installation, reader)
      const isEmpty = Object.keys(body).length === 0
      return [...(isEmpty ? [] : [{ ...patchOf(kind, id, body), version }]), ...further(present, id)]
    },
  }
}

/** What is there as a file would say it. A file may go on to name a token that ended since. */
function presentFor(
  desired: Entry,
  { kind, record, installation }: { kind: Kind; record: Shown; installation: Installation },
): Entry {
  const present = presentEntry(kind, record, (path, id) => installation.nameOf(path, id))
  const former = presentEntry(kind, record, (path, id) => installation.formerNameOf(path, id))
  return Object.fromEntries(
    Object.entries(present).map(([field, value]) => [field, differs(field, desired, former) ? value : former[field]]),
  )
}

const differs = (field: string, one: Entry, other: Entry): boolean => !Bun.deepEquals(one[field], other[field])

/** An entry as its file has it, without its name. */
function asWritten({ kind, source, at }: Wanted): Entry {
  const { [kind.key]: _, ...fields } = entrySchema.parse(at.reduce<unknown>(entryMember, source.content))
  return fields
}

const patchOf = (kind: Kind, id: string, body: unknown): Call => ({
  method: 'PATCH',
  path: `${kind.path}/${encodeURIComponent(id)}`,
  body,
})

const without = (entry: Entry, fields: readonly string[]): Entry =>
  Object.fromEntries(Object.entries(entry).filter(([field]) => !fields.includes(field)))

/** Fields that name records of the same kind, such as the fallbacks of a model. */
const ownFields = (kind: Kind): string[] =>
  kind.places.flatMap(({ path: [field], refersTo }) =>
    field !== undefined && refersTo?.({}, '')?.path === kind.path ? [field] : [],
  )

/** Those that name a record which is not there yet. Two may name each other, so they are set when both are there. */
const deferredFields = ({ kind, entry }: Wanted, installation: Installation): string[] =>
  ownFields(kind).filter((field) =>
    namesIn(entry[field]).some((name) => presentOf(kind, name, installation) === undefined),
  )

const namesIn = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : [])

const shown = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function changesOf(kind: Kind, { entry, desired, present }: { entry: Entry; desired: Entry; present: Entry }): Changes {
  const differing = kind.fields.filter(
    (field) => !(kind.kept.includes(field) && entry[field] === undefined) && differs(field, desired, present),
  )
  return Object.fromEntries(differing.map((field) => [field, { from: present[field], to: desired[field] }]))
}

const secretFields = ({ places }: Kind): string[] => [
  ...new Set(
    places.flatMap(({ path: [field], refersTo }) => (refersTo === null && field !== undefined ? [field] : [])),
  ),
]

/** Fields of an entry, with what a new record has of those that it leaves out. */
const partOf = (kind: Kind, entry: Entry, fields: readonly string[]): Entry =>
  Object.fromEntries(fields.map((field) => [field, entry[field] ?? kind.absent[field] ?? null]))

/** The API's body of an entry or of a part of one, with ids and secrets. */
async function bodyOf(
  part: Entry,
  { kind, entry, source, at }: Wanted,
  installation: Installation,
  reader: SecretReader,
) {
  const secrets = new Map<unknown, string>()
  for (const { path, refersTo } of kind.places) {
    if (refersTo !== null) continue
    const found: [unknown, readonly string[]][] = []
    replaced(part, path, path, (reference, where) => found.push([reference, where]))
    for (const [reference, where] of found) {
      const secret = await reader.read(secretReference.parse(reference), source.name).catch((thrown: unknown) => {
        const { message } = asFailure(thrown)
        throw new Failure('usage', { message: faultLine(source, [...at, ...where], message), cause: thrown })
      })
      secrets.set(JSON.stringify(reference), secret)
    }
  }
  let body: unknown = part
  for (const { path, apiPath, refersTo } of kind.places) {
    body = replaced(body, path, apiPath, (found) => {
      if (refersTo === null) return secrets.get(JSON.stringify(found))
      const target = refersTo(entry, found)
      if (target === null || typeof found !== 'string') return found
      const { path: records, prefix = '' } = target
      return prefix + installation.idOf(records, found.slice(prefix.length))
    })
  }
  return bodyNames(kind, entrySchema.parse(body))
}

/** Every name in a field that is to be sent must be that of a record that is there, or that a file makes. */
function requireReferences(
  { kind, entry, source, at }: Wanted,
  installation: Installation,
  faults: Faults,
  isSent: (field: string) => boolean,
): void {
  for (const { path, refersTo } of kind.places) {
    if (refersTo === null || !isSent(path[0] ?? '')) continue
    replaced(entry, path, path, (found, where) => {
      const target = refersTo(entry, found)
      if (target === null || typeof found !== 'string') return found
      try {
        installation.idOf(target.path, found.slice((target.prefix ?? '').length))
      } catch (thrown) {
        if (!(thrown instanceof Failure)) throw thrown
        faults.add(source, [...at, ...where.map((name) => (/^\d+$/.test(name) ? Number(name) : name))], thrown.message)
      }
      return found
    })
  }
}

/** In the opposite order: what refers to others goes first. */
function deletions({ entries, kinds }: Wish, installation: Installation, label: string | null): Step[] {
  return [...kinds]
    .toSorted((one, other) => other.order - one.order)
    .flatMap((kind) => {
      const named = new Set(entries.filter((wanted) => wanted.kind === kind).map(({ name }) => name))
      const gone = installation.records(kind).flatMap((record) => {
        const id = kind.idOf(record)
        const stays = named.has(kind.nameOf(record)) || (label !== null && installation.labelOf(kind, id) !== label)
        const calls = stays ? [] : kind.remove(record, id)
        return calls.length === 0 ? [] : [{ record, id, calls }]
      })
      // Records that name each other let go of each other first.
      const letGo = gone.flatMap(({ record, id }) =>
        ownFields(kind)
          .filter((field) => gone.length > 1 && namesIn(record[field]).length > 0)
          .map((field) => patchOf(kind, id, { [field]: kind.absent[field] ?? null })),
      )
      return gone.map(({ record, id, calls: removing }, index): Step => {
        const version = letGo.length > 0 ? {} : { version: Number(record.version) }
        const last = removing.length - 1
        const ofVersion = removing.map((call, place) => (place === last ? { ...call, ...version } : call))
        const calls = async () => [...(index === 0 ? letGo : []), ...ofVersion]
        return {
          action: 'delete',
          kind,
          name: kind.nameOf(record),
          id,
          changes: {},
          made: null,
          calls,
          later: [],
          refused: () => null,
        }
      })
    })
}
