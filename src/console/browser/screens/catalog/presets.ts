/** The services that are known by name: what each needs, in words. */
import type { PresetRecord } from '../../../../providers/presets/preset-record.ts'
import { request } from '../../api/request.ts'

export type Preset = PresetRecord

export const readPresets = async (signal?: AbortSignal): Promise<Preset[]> =>
  (await request<{ presets: Preset[] }>('GET', '/v1/catalog/provider-presets', { signal })).presets

/** `Needs a key (in the environment: GROQ_API_KEY). It is reached at https://…` */
export function presetNeeds({ key_needed, key_variable, address, address_needed }: Preset): string {
  const key = key_needed ? 'Needs a key' : 'Works without a key'
  const variable = key_variable === null ? '' : ` (in the environment: ${key_variable})`
  const place = address === null ? (address_needed ?? '') : `It is reached at ${address}`
  return `${key}${variable}. ${place}`.trim()
}
