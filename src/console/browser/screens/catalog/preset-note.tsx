import { useLoaded } from '../../parts/loaded.tsx'
import { presetNeeds, readPresets } from './presets.ts'

/** What the chosen preset needs; nothing where none is chosen, or where it is not known yet. */
export function PresetNote({ name }: { name: unknown }) {
  const presets = useLoaded('presets', readPresets)
  const preset = presets.value?.find((one) => one.name === name)
  return (
    <p class="small quiet" role="status">
      {preset !== undefined && `${preset.title}: ${presetNeeds(preset)}`}
    </p>
  )
}
