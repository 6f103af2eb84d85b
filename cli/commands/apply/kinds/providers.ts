import { checkedBaseUrl } from '../../../../src/providers/base-url.ts'
import { createProviderBody, providerResource, withPreset } from '../../../../src/providers/provider-resource.ts'
import { kindOf, secretThere } from '../kind.ts'
import type { Entry } from '../places.ts'

/** With what a preset says, and the address as it is kept. Whether plain HTTP is allowed is a setting of the control plane. */
function normalised(entry: Entry): Entry {
  const { name, preset, kind, base_url, allow_unlisted_models } = entry
  const given = createProviderBody.pick({
    name: true,
    preset: true,
    kind: true,
    base_url: true,
    allow_unlisted_models: true,
  })
  const asked = given.parse({ name, preset, kind, base_url, allow_unlisted_models })
  const { preset: _, ...rest } = entry
  const known = withPreset(asked)
  const address = asked.base_url === undefined ? {} : { base_url: checkedBaseUrl(asked.base_url, 'anywhere') }
  return { ...rest, name: known.name, kind: known.kind, allow_unlisted_models: known.unlisted, ...address }
}

/** An address that changes needs its secrets again. */
export const providers = kindOf(providerResource, {
  ignored: ['preset'],
  normalised,
  shown: ({ api_key_count: count }) => ({ more_api_keys: Number(count) > 1 ? secretThere : null }),
  secretsWith: ['base_url', 'api_key', 'more_api_keys', 'headers'],
})
