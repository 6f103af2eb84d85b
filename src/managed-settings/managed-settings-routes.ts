/** `/v1/catalog/managed-settings`: which settings there are, and for whom. */
import { and, eq, gt } from 'drizzle-orm'
import { type PageQuery, recordPage } from '../api/page.ts'
import { type RecordCall, resourceRoutes } from '../api/resource-routes.ts'
import { Failure } from '../failure.ts'
import { findTeam } from '../members/teams/stored-team.ts'
import {
  atVersion,
  type CatalogDependencies,
  changeable,
  changeCatalog,
  holds,
  madeAt,
  missing,
  nameIsFree,
  wrong,
} from '../providers/catalog/catalog-change.ts'
import { insert, newStateVersion, query, statement, update } from '../store/query.ts'
import { managedSettings } from '../store/schema/state/catalog.ts'
import { type ManagedSettingsRecord, managedSettingsResource } from './managed-settings-resource.ts'

type Row = typeof managedSettings.$inferSelect
type Dependencies = Pick<CatalogDependencies, 'state' | 'ledger' | 'recorder' | 'clock' | 'newId'>
type Fields = Pick<Row, 'name' | 'teamIds' | 'priority' | 'settings' | 'checksum'>

export const managedSettingsRoutes = (deps: Dependencies) =>
  resourceRoutes(managedSettingsResource, {
    list: (page) => listSettings(deps, page),
    get: async (id) => shown(await requireSettings(deps, id)),
    async create({ name, settings, team_ids, priority }, call) {
      const id = deps.newId()
      const fields = { name, teamIds: team_ids, priority, ...written(settings) }
      await change(deps, call, { type: 'catalog.created', id, before: null, fields })
      return shown(await requireSettings(deps, id))
    },
    async update(id, body, call) {
      const before = changeable(call, await requireSettings(deps, id))
      const fields = {
        name: body.name ?? before.name,
        teamIds: body.team_ids ?? before.teamIds,
        priority: body.priority ?? before.priority,
        ...(body.settings === undefined
          ? { settings: before.settings, checksum: before.checksum }
          : written(body.settings)),
      }
      await change(deps, call, { type: 'catalog.updated', id, before, fields })
      return shown(await requireSettings(deps, id))
    },
    async remove(id, call) {
      const before = changeable(call, await requireSettings(deps, id))
      await changeCatalog(deps, call, {
        type: 'catalog.deleted',
        details: { managed_settings_id: id, name: before.name },
        guard: atVersion(managedSettings, before),
        state: [
          statement(
            update(managedSettings).set({ deleted: 1, version: newStateVersion }).where(eq(managedSettings.id, id)),
          ),
        ],
      })
      return shown(before)
    },
  })

/**
 * JSON with the members of each object in order, and its checksum: agents compute the same and ask for changes by it.
 */
export function written(settings: Record<string, unknown>): Pick<Fields, 'settings' | 'checksum'> {
  const text = JSON.stringify(inOrder(settings))
  return { settings: text, checksum: `sha256:${new Bun.CryptoHasher('sha256').update(text).digest('hex')}` }
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(members.map(([name, member]) => [name, inOrder(member)]))
}

const shown = ({ id, name, teamIds, priority, settings, checksum, version }: Row): ManagedSettingsRecord => ({
  ...{ id, name, priority, checksum, version },
  settings: JSON.parse(settings),
  team_ids: [...teamIds],
  created_at: madeAt(id),
})

const listSettings = ({ state }: Dependencies, page: PageQuery) =>
  recordPage(page, {
    filters: {},
    read: (after, count) =>
      query(state)
        .select()
        .from(managedSettings)
        .where(and(gt(managedSettings.id, after), eq(managedSettings.deleted, 0)))
        .orderBy(managedSettings.id)
        .limit(count),
    show: (rows) => rows.map(shown),
  })

async function requireSettings({ state }: Dependencies, id: string): Promise<Row> {
  const found = and(eq(managedSettings.id, id), eq(managedSettings.deleted, 0))
  const row = await query(state).select().from(managedSettings).where(found).get()
  if (row === undefined) throw missing('record of managed settings')
  return row
}

interface Change {
  type: 'catalog.created' | 'catalog.updated'
  id: string
  /** Null for a new record. */
  before: Row | null
  fields: Fields
}

/** The event names the settings by their checksum: what they say is in the record, and may be long. */
async function change(deps: Dependencies, call: RecordCall, { type, id, before, fields }: Change): Promise<void> {
  const { name, teamIds, priority, checksum } = fields
  for (const team of teamIds) {
    if ((await findTeam(deps.ledger, team)) === null) throw wrong('team_ids', `There is no team ${team}`)
  }
  const isFree = nameIsFree(managedSettings, name, id)
  if (!(await holds(deps.state, isFree))) {
    throw new Failure('conflict', { param: 'name', message: `There are managed settings named ${name} already` })
  }
  const row = { ...fields, version: newStateVersion }
  await changeCatalog(deps, call, {
    type,
    details: { managed_settings_id: id, name, team_ids: teamIds, priority, checksum },
    guard: before === null ? isFree : and(atVersion(managedSettings, before), isFree),
    state: [
      before === null
        ? statement(insert(managedSettings).values({ id, ...row }))
        : statement(update(managedSettings).set(row).where(eq(managedSettings.id, id))),
    ],
  })
}
