/** The calls on one record that are alike for all kinds of the catalog: reading, changing and deleting it. */
import { Elysia } from 'elysia'
import type { z } from 'zod'
import { conventions } from '../api/conventions.ts'
import { requireVersion } from '../api/entity-tag.ts'
import type { CatalogCall } from './catalog/catalog-change.ts'

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
  update(call: CatalogCall, before: Row, body: Body): Promise<Reply>
  /** Gives the last record. */
  remove(call: CatalogCall, before: Row): Promise<Reply>
}

interface Versioned {
  version: number
}

/** Changes and deletions hold for the version that `If-Match` names. */
export const recordRoutes = <Row extends Versioned, Body, Reply extends Versioned>(
  kind: RecordKind<Row, Body, Reply>,
) => routesOf(kind)

/** The kinds differ in types that Elysia cannot carry through as parameters. */
function routesOf(kind: RecordKind<Versioned, unknown, Versioned>) {
  const { tag, params, reply: response, summaries } = kind
  const path = `${kind.path}/:id`
  const present = async (id: string, { headers }: Request) => {
    const before = await kind.find(id)
    requireVersion(headers, before.version)
    return before
  }
  return new Elysia({ name: path })
    .use(conventions)
    .get(path, async ({ params: { id } }) => await kind.show(await kind.find(id)), {
      access: 'catalog:read',
      params,
      versioned: true,
      response,
      detail: { tags: [tag], summary: summaries.get },
    })
    .patch(
      path,
      async ({ principal, requestId, params: { id }, body, request }) =>
        await kind.update({ principal, requestId }, await present(id, request), body),
      {
        access: 'catalog:write',
        params,
        body: kind.body,
        versioned: true,
        ifMatch: true,
        response,
        detail: { tags: [tag], summary: summaries.update },
      },
    )
    .delete(
      path,
      async ({ principal, requestId, params: { id }, request }) =>
        await kind.remove({ principal, requestId }, await present(id, request)),
      {
        access: 'catalog:write',
        params,
        ifMatch: true,
        response,
        detail: { tags: [tag], summary: summaries.remove },
      },
    )
}
