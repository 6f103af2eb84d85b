/** What an installation has, read over the API: records by kind, and the names and ids by which they refer to each other. */
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { isUuid } from '../../../src/lib/ids.ts'
import { nearest } from '../../../src/lib/text/nearest.ts'
import type { Api } from '../../command/api.ts'
import { pageSchema } from '../../command/record.ts'
import { entrySchema, type Kind, type Shown } from './kind.ts'
import { kinds } from './kinds/kinds.ts'

/** Tokens are named by other records and stand in no file. Ended ones do not count. */
const tokens = {
  path: '/v1/tokens',
  one: 'token',
  plural: 'tokens',
  idOf: ({ id }: Shown) => String(id),
  nameOf: ({ name }: Shown) => String(name),
  isCounted: ({ status }: Shown) => !['revoked', 'expired', 'rotated'].includes(String(status)),
}
type Referred = Pick<Kind, 'path' | 'one' | 'plural' | 'idOf' | 'nameOf'> & { isCounted?(record: Shown): boolean }

const labelSchema = z.object({ path: z.string(), id: z.string(), label: z.string() })

export class Installation {
  readonly #api: Api
  readonly #records = new Map<string, Shown[]>()
  /** Those that do not count, by the path of their kind. */
  readonly #ended = new Map<string, Shown[]>()
  readonly #labels = new Map<string, string>()
  /** Names of records that a plan makes, by the path of their kind, and what stands for their ids. */
  readonly #planned = new Map<string, Map<string, string>>()

  constructor(api: Api) {
    this.#api = api
  }

  /** Reads the records of kinds, and of those that they name. Each is read once. */
  async load(wanted: Iterable<Kind>): Promise<void> {
    const paths = new Set<string>()
    for (const kind of wanted) {
      paths.add(kind.path)
      for (const path of referredBy(kind)) paths.add(path)
    }
    for (const path of paths) {
      if (this.#records.has(path)) continue
      const kind = referred(path)
      const found = await readAll(this.#api, kind)
      const { counted = [], ended = [] } = Object.groupBy(found, (record) =>
        kind.isCounted?.(record) === false ? 'ended' : 'counted',
      )
      this.#records.set(path, counted)
      this.#ended.set(path, ended)
    }
  }

  /** Reads which record carries which label. */
  async loadLabels(): Promise<void> {
    const rows = await readAll(this.#api, { path: '/v1/labels', plural: 'labels' })
    for (const { path, id, label } of z.array(labelSchema).parse(rows)) this.#labels.set(`${path} ${id}`, label)
  }

  labelOf({ path }: Kind, id: string): string | null {
    return this.#labels.get(`${path} ${id}`) ?? null
  }

  /** Those of a kind that was loaded. */
  records({ path }: Pick<Kind, 'path'>): readonly Shown[] {
    return this.#records.get(path) ?? []
  }

  /** What will stand for the id of a record that is not there yet. */
  plan({ path }: Kind, name: string, id: string): void {
    const names = this.#planned.get(path) ?? new Map<string, string>()
    this.#planned.set(path, names.set(name, id))
  }

  /** The id of a record by its name; an id stands for itself. Throws `usage` where no record has the name, or several do. */
  idOf(path: string, name: string): string {
    const kind = referred(path)
    const planned = this.#planned.get(path)
    const found = this.records(kind).filter((record) => kind.nameOf(record) === name)
    const [one, another] = found
    if (another !== undefined) {
      const ids = found.map(kind.idOf).join(', ')
      throw new Failure('usage', {
        message: `${found.length} records are the ${kind.one} "${name}": write one of the ids ${ids}`,
      })
    }
    if (one !== undefined) return kind.idOf(one)
    const made = planned?.get(name)
    if (made !== undefined) return made
    if (isUuid(name)) return name
    const names = [...this.records(kind).map(kind.nameOf), ...(planned?.keys() ?? [])]
    const meant = nearest(name, names)
    throw new Failure('usage', {
      message: `There is no ${kind.one} "${name}"${meant === null ? '' : `: did you mean ${meant}?`}`,
    })
  }

  /** The name of a record by its id; the id where no other name says which it is. */
  nameOf(path: string, id: string): string {
    const kind = referred(path)
    const one = this.records(kind).find((record) => kind.idOf(record) === id)
    if (one === undefined) return id
    const name = kind.nameOf(one)
    return this.records(kind).filter((record) => kind.nameOf(record) === name).length === 1 ? name : id
  }

  /** As `nameOf`; of a token that ended, the name that it had, unless another token has it now. */
  formerNameOf(path: string, id: string): string {
    const kind = referred(path)
    const one = this.#ended.get(path)?.find((record) => kind.idOf(record) === id)
    if (one === undefined) return this.nameOf(path, id)
    const name = kind.nameOf(one)
    return this.records(kind).some((record) => kind.nameOf(record) === name) ? id : name
  }
}

const referred = (path: string): Referred => {
  const kind = path === tokens.path ? tokens : kinds.find((each) => each.path === path)
  if (kind === undefined) throw new Error(`No kind is at ${path}: records that refer to it need it in kinds.ts`)
  return kind
}

/** The paths of kinds that records of this kind can name. */
const referredBy = ({ places, referredPaths }: Kind): readonly string[] =>
  places.flatMap(({ refersTo }) => {
    if (refersTo === null) return []
    const always = refersTo({}, '')
    return always === null ? referredPaths : [always.path]
  })

async function readAll(api: Api, { path, plural }: Pick<Referred, 'path' | 'plural'>): Promise<Shown[]> {
  const found: Shown[] = []
  let cursor: string | undefined
  do {
    const page = await api.json({ path, query: { cursor } }, pageSchema)
    found.push(...z.array(entrySchema).parse(page[plural]))
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
  return found
}
