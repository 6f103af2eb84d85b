/**
 * The routes of files and batches, as OpenAI has them. `POST /v1/files` has stages of its own (`upload.ts`); the others
 * are calls for what a provider stores.
 */
import type { StoredRoute } from '../stored/routes.ts'

export const filesPath = '/v1/files'
export const batchesPath = '/v1/batches'

export interface BatchRoute extends Pick<StoredRoute, 'method' | 'path' | 'summary' | 'query' | 'body'> {
  readonly about: 'file' | 'content' | 'batch' | 'new batch'
  /** The path at the provider. */
  upstream(id: string): string
}

const plain = { query: {}, body: 'none' } as const

export const uploadRoute: Pick<StoredRoute, 'method' | 'path' | 'summary'> = {
  method: 'POST',
  path: filesPath,
  summary: 'Uploads a file of requests, one a line, for a batch; each passes the checks of its family first',
}

export const listRoutes: readonly (Pick<StoredRoute, 'method' | 'path' | 'summary'> & { kind: 'file' | 'batch' })[] = [
  {
    kind: 'file',
    method: 'GET',
    path: filesPath,
    summary: 'Lists the files that the owner of the token uploaded in the last 30 days, the latest first',
  },
  {
    kind: 'batch',
    method: 'GET',
    path: batchesPath,
    summary: 'Lists the batches that the owner of the token made in the last 30 days, the latest first',
  },
]

export const batchRoutes: readonly BatchRoute[] = [
  {
    ...plain,
    about: 'file',
    method: 'GET',
    path: `${filesPath}/:id`,
    summary: 'Reads what the provider knows of a file',
    upstream: (id) => `/files/${id}`,
  },
  {
    ...plain,
    about: 'file',
    method: 'DELETE',
    path: `${filesPath}/:id`,
    summary: 'Deletes a file at its provider',
    upstream: (id) => `/files/${id}`,
  },
  {
    ...plain,
    about: 'content',
    method: 'GET',
    path: `${filesPath}/:id/content`,
    summary: 'Downloads a file; each answer in the output of a batch passes the policies on answers first',
    upstream: (id) => `/files/${id}/content`,
  },
  {
    ...plain,
    about: 'new batch',
    method: 'POST',
    path: batchesPath,
    summary: 'Starts a batch; it holds the most that its lines can cost until it ended',
    body: 'required',
    upstream: () => '/batches',
  },
  {
    ...plain,
    about: 'batch',
    method: 'GET',
    path: `${batchesPath}/:id`,
    summary: 'Reads a batch',
    upstream: (id) => `/batches/${id}`,
  },
  {
    ...plain,
    about: 'batch',
    method: 'POST',
    path: `${batchesPath}/:id/cancel`,
    summary: 'Cancels a batch; what was answered is charged',
    upstream: (id) => `/batches/${id}/cancel`,
  },
]
