/** Every provider kind: those of the presets, and the simulator. Adding one is its file and its row in the presets. */

import { presets } from '../presets/presets.ts'
import type { ProviderKind } from '../provider.ts'
import { simulator } from '../simulator/simulator.ts'

export const providerKinds: ReadonlyMap<string, ProviderKind> = new Map(
  [...presets.map(({ kind }) => kind), simulator].map((kind) => [kind.kind, kind]),
)
