/**
 * The routes for objects that a provider stores, as data: what the caller asks and what the provider is asked. The
 * pipeline has their stages, and `openapi/stored-routes.ts` describes them. The forms of queries are checked, because a
 * query goes on to the provider.
 */
import { z } from 'zod'
import { isProviderId } from './sealed-id.ts'
import type { StoredKind } from './stored-state.ts'

type QueryForms = Readonly<Record<string, z.ZodOptional<z.ZodType<string>>>>

export interface StoredRoute {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** With `:name` for a part of the path. */
  readonly path: string
  readonly summary: string
  /** What the id in the path names; null where there is none. */
  readonly kind: StoredKind | null
  readonly hasItem: boolean
  /** Each query parameter that goes on to the provider, and its form. */
  readonly query: QueryForms
  readonly body: 'none' | 'optional' | 'required'
  /** What the answer is (`StoredCall.gives`). */
  readonly gives: StoredKind | null
  /** Whose id the answer must have. */
  readonly answers: 'object' | 'item' | 'others'
  /** The path at the provider. */
  upstream(id: string, item: string): string
}

const flag = z.enum(['true', 'false']).optional()
const cursor = z.string().refine(isProviderId, 'This is no id of an item').optional()
const included = z
  .string()
  .regex(/^[a-z_.[\]]{1,100}$/)
  .optional()
  .describe('More to include in the answer; may be repeated')
const include = { include: included, 'include[]': included }
const page = {
  limit: z
    .string()
    .regex(/^(?:[1-9]\d?|100)$/)
    .optional()
    .describe('How many items a page has: 1 to 100'),
  order: z.enum(['asc', 'desc']).optional(),
  after: cursor,
  before: cursor,
  ...include,
}
const streaming = {
  ...include,
  stream: flag.describe('Answer as server-sent events'),
  starting_after: z
    .string()
    .regex(/^\d{1,9}$/)
    .optional()
    .describe('The number of the last event that the client has'),
  include_obfuscation: flag,
}

const ofResponse = { kind: 'resp', hasItem: false, query: {}, body: 'none', gives: 'resp', answers: 'object' } as const
const ofConversation = { ...ofResponse, kind: 'conv', gives: 'conv' } as const
const ofItems = { ...ofConversation, gives: null, answers: 'others' } as const

export const conversationsPath = '/v1/conversations'
const response = '/v1/responses/:response_id'
const conversation = `${conversationsPath}/:conversation_id`

export const storedRoutes: readonly StoredRoute[] = [
  {
    ...ofResponse,
    method: 'GET',
    path: response,
    summary: 'Reads a stored response, whole or as the events after one that is known',
    query: streaming,
    upstream: (id) => `/responses/${id}`,
  },
  {
    ...ofResponse,
    method: 'DELETE',
    path: response,
    summary: 'Deletes a stored response at its provider',
    upstream: (id) => `/responses/${id}`,
  },
  {
    ...ofResponse,
    method: 'POST',
    path: `${response}/cancel`,
    summary: 'Cancels a response that runs in the background',
    upstream: (id) => `/responses/${id}/cancel`,
  },
  {
    ...ofResponse,
    method: 'GET',
    path: `${response}/input_items`,
    summary: 'Lists the input items of a stored response',
    query: page,
    gives: null,
    answers: 'others',
    upstream: (id) => `/responses/${id}/input_items`,
  },
  {
    ...ofConversation,
    method: 'POST',
    path: conversationsPath,
    summary: 'Creates a conversation at the provider of `model`, or else at the first that stores conversations',
    kind: null,
    body: 'optional',
    upstream: () => '/conversations',
  },
  {
    ...ofConversation,
    method: 'GET',
    path: conversation,
    summary: 'Reads a conversation',
    upstream: (id) => `/conversations/${id}`,
  },
  {
    ...ofConversation,
    method: 'POST',
    path: conversation,
    summary: 'Changes the metadata of a conversation',
    body: 'required',
    upstream: (id) => `/conversations/${id}`,
  },
  {
    ...ofConversation,
    method: 'DELETE',
    path: conversation,
    summary: 'Deletes a conversation at its provider',
    upstream: (id) => `/conversations/${id}`,
  },
  {
    ...ofItems,
    method: 'GET',
    path: `${conversation}/items`,
    summary: 'Lists the items of a conversation',
    query: page,
    upstream: (id) => `/conversations/${id}/items`,
  },
  {
    ...ofItems,
    method: 'POST',
    path: `${conversation}/items`,
    summary: 'Adds items to a conversation',
    query: include,
    body: 'required',
    upstream: (id) => `/conversations/${id}/items`,
  },
  {
    ...ofItems,
    method: 'GET',
    path: `${conversation}/items/:item_id`,
    summary: 'Reads one item of a conversation',
    hasItem: true,
    query: include,
    answers: 'item',
    upstream: (id, item) => `/conversations/${id}/items/${item}`,
  },
  {
    ...ofConversation,
    method: 'DELETE',
    path: `${conversation}/items/:item_id`,
    summary: 'Deletes one item of a conversation',
    hasItem: true,
    upstream: (id, item) => `/conversations/${id}/items/${item}`,
  },
]

/** The path as documents and events write it: with `{name}` for its parts. */
export const describedPath = ({ path }: Pick<StoredRoute, 'path'>): string => path.replace(/:(\w+)/g, '{$1}')
