/** `GET /v1/catalog/provider-presets`: the services that are known by name, and what each needs. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import type { Provider } from '../provider.ts'
import { type PresetRecord, presetSchema } from './preset-record.ts'
import { presets } from './presets.ts'

export const presetRoutes = () =>
  new Elysia({ name: 'provider presets' })
    .use(conventions)
    .get('/v1/catalog/provider-presets', () => ({ presets: presets.map(presetRecord) }), {
      access: 'catalog:read',
      response: z.object({ presets: z.array(presetSchema) }),
      detail: { tags: ['Catalog'], summary: 'Lists the services that are known by name, and what each needs' },
    })

const isOfThisHost = (address: string | null): boolean => address?.startsWith('http://127.0.0.1') === true

export function presetRecord({ name, title, kind }: (typeof presets)[number]): PresetRecord {
  const problem = kind.addressProblem(null, {})
  const address = problem === null ? (kind.address?.(providerOf(kind.kind)) ?? null) : null
  return {
    name,
    title,
    address,
    address_needed: problem,
    key_variable: kind.environment?.apiKey ?? null,
    key_needed: !isOfThisHost(address) && kind.keyProblem === undefined,
    families: [...kind.families],
  }
}

/** A provider of which only the kind is known. */
const providerOf = (kind: string): Provider => ({
  ...{ id: '', name: kind, kind, baseUrl: null, apiKey: null, headers: {}, allowUnlistedModels: true },
})
