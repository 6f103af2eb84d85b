/** The calls on one record that are alike for all kinds of the catalog: reading, changing and deleting it. */
import type { z } from 'zod'
import { requireVersion } from '../api/entity-tag.ts'
import { type Answer, type AnyRoute, route } from '../api/route.ts'
import { answered, type CatalogCall } from './catalog/catalog-change.ts'

interface RecordKind<Row, Body, Reply> {
  /** Of the collection: `/v1/catalog/providers`. */
  path: string
  tag: string
  summaries: { get: string; update: string; remove: string }
  params: z.ZodType<{ id: string }>
  body: z.ZodType<Body>
  reply: z.ZodType<Reply>
  /** Throws `not_found`. */
  find(id: string): Promise<Row>
  show(row: Row): Promise<Reply> | Reply
  update(call: CatalogCall, before: Row, body: Body): Promise<Answer<Reply>>
  /** Gives the last record. */
  remove(call: CatalogCall, before: Row): Promise<Answer<Reply>>
}

/** Changes and deletions hold for the version that `If-Match` names. */
export function recordRoutes<Row extends { version: number }, Body, Reply extends { version: number }>(
  kind: RecordKind<Row, Body, Reply>,
): AnyRoute[] {
  const { tag, params, reply, summaries } = kind
  const one = { path: `${kind.path}/{id}`, tag, params, reply } as const
  const present = async (id: string, headers: Headers) => {
    const before = await kind.find(id)
    requireVersion(headers, before.version)
    return before
  }
  return [
    route({
      ...one,
      method: 'GET',
      summary: summaries.get,
      access: 'catalog:read',
      handle: async (call) => answered(await kind.show(await kind.find(call.params.id))),
    }),
    route({
      ...one,
      method: 'PATCH',
      summary: summaries.update,
      access: 'catalog:write',
      body: kind.body,
      handle: async (call) => await kind.update(call, await present(call.params.id, call.headers), call.body),
    }),
    route({
      ...one,
      method: 'DELETE',
      summary: summaries.remove,
      access: 'catalog:write',
      handle: async (call) => await kind.remove(call, await present(call.params.id, call.headers)),
    }),
  ]
}
