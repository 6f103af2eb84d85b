/**
 * The five routes of a kind of record, made from its description: list, get, create, update, delete. A room gives the
 * handlers, which know nothing of paths, permissions and schemas. A change holds for the version that `If-Match` names:
 * the handler compares it by `requireVersion(call.headers, version)` once it has read the record.
 */
import { type AnyElysia, Elysia } from 'elysia'
import { z } from 'zod'
import type { Principal } from '../identity/principal.ts'
import { conventions } from './conventions.ts'
import { type Page, type PageQuery, pageQuery } from './page.ts'
import { idName, type Resource } from './resource.ts'

/** Who calls, by which request. */
export interface RecordCall {
  principal: Principal
  requestId: string
  headers: Headers
}

type Filters<Kind extends Resource> = Kind['filters'] extends z.ZodType ? z.infer<Kind['filters']> : unknown
type Shown<Kind extends Resource> = z.infer<Kind['record']>
type Updated<Kind extends Resource> = Kind['updated'] extends z.ZodType ? z.infer<Kind['updated']> : Shown<Kind>

/** What a room does in the five calls. Each gives the record as the API shows it, or throws a `Failure`. */
export type RecordHandlers<Kind extends Resource> = Handlers<
  Filters<Kind> & PageQuery,
  z.infer<Kind['create']>,
  z.infer<Kind['update']>,
  Shown<Kind>,
  Updated<Kind>
> &
  (Kind['summaries'] extends { delete: string } ? Required<Deletes<Shown<Kind>>> : unknown)

interface Handlers<Query, Create, Update, Shown, Updated> {
  list(query: Query, call: RecordCall): Promise<Page<Shown>>
  get(id: string, call: RecordCall): Promise<Shown>
  create(body: Create, call: RecordCall): Promise<Shown>
  update(id: string, body: Update, call: RecordCall): Promise<Updated>
}

interface Deletes<Shown> {
  /** Gives the last record. */
  remove?(id: string, call: RecordCall): Promise<Shown>
}

export const resourceRoutes = <Kind extends Resource>(kind: Kind, handlers: RecordHandlers<Kind>): AnyElysia =>
  routesOf(kind, handlers)

type Fields = Record<string, unknown>

/** The kinds differ in types that Elysia cannot carry through as parameters. */
function routesOf(
  kind: Resource,
  handlers: Handlers<PageQuery, Fields, Fields, Fields, Fields> & Deletes<Fields>,
): AnyElysia {
  const { access, params, plural, record, summaries, updated = record } = kind
  const notes: Partial<typeof summaries> = { ...kind.notes, delete: 'gives its last record' }
  const name = idName(kind)
  const one = `${kind.path}/:${name}`
  const detail = (call: keyof Resource['summaries']) => ({
    tags: [kind.tag],
    summary: [summaries[call], notes[call]].filter(Boolean).join('; '),
  })
  const routes = new Elysia({ name: kind.path })
    .use(conventions)
    .get(
      kind.path,
      async ({ query, principal, requestId, request: { headers } }) => {
        const { records, next_cursor } = await handlers.list(query, { principal, requestId, headers })
        return { [plural]: records, next_cursor }
      },
      {
        access: access.read,
        query: (kind.filters ?? z.strictObject({})).extend(pageQuery),
        response: z.object({ [plural]: z.array(record), next_cursor: z.string().nullable() }),
        detail: detail('list'),
      },
    )
    .post(
      kind.path,
      async ({ body, principal, requestId, request: { headers }, status }) =>
        status(201, await handlers.create(body, { principal, requestId, headers })),
      {
        access: access.write,
        body: kind.create,
        versioned: true,
        response: { 201: record },
        detail: detail('create'),
      },
    )
    .get(
      one,
      async ({ params: named, principal, requestId, request: { headers } }) =>
        await handlers.get(String(named[name]), { principal, requestId, headers }),
      { access: access.read, params, versioned: true, response: record, detail: detail('get') },
    )
    .patch(
      one,
      async ({ params: named, body, principal, requestId, request: { headers } }) =>
        await handlers.update(String(named[name]), body, { principal, requestId, headers }),
      {
        access: access.write,
        params,
        body: kind.update,
        versioned: true,
        ifMatch: true,
        response: updated,
        detail: detail('update'),
      },
    )
  const { remove } = handlers
  if (remove === undefined) return routes
  return routes.delete(
    one,
    async ({ params: named, principal, requestId, request: { headers } }) =>
      await remove(String(named[name]), { principal, requestId, headers }),
    { access: access.write, params, ifMatch: true, response: record, detail: detail('delete') },
  )
}
