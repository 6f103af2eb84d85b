/** Connects a known service by its key, and asks it for an answer at once. */
import { useState } from 'preact/hooks'
import { href } from '../../address.ts'
import { request } from '../../api/request.ts'
import { RequiredNote, SelectField, TextField } from '../../parts/forms/field.tsx'
import { useAction } from '../../parts/frame/dialog.tsx'
import { ErrorNote, Show, useLoaded } from '../../parts/loaded.tsx'
import { type Preset, presetNeeds, readPresets } from '../catalog/presets.ts'
import { ProviderTrial } from '../catalog/provider-test.tsx'

/** `changed` is called when a provider was added, and after each test of it. */
export function AddProvider({ changed }: { changed(): void }) {
  const presets = useLoaded('presets', readPresets)
  const [made, setMade] = useState<{ id: string } | null>(null)
  return (
    <>
      <p>
        Its key is stored encrypted, and no application sees it. Without a key, go on to the next step: the built-in
        simulator answers.
      </p>
      {made === null ? (
        <Show of={presets} rows={2}>
          {(known) => (
            <KeyForm
              presets={known}
              made={(provider) => {
                setMade(provider)
                changed()
              }}
            />
          )}
        </Show>
      ) : (
        <>
          <ProviderTrial id={made.id} tested={changed} />
          <div class="row">
            <a href={href('/catalog', { kind: 'providers', open: made.id })}>Change its key or address</a>
          </div>
        </>
      )}
    </>
  )
}

function KeyForm({ presets, made }: { presets: readonly Preset[]; made(provider: { id: string }): void }) {
  const [name, setName] = useState(presets[0]?.name ?? '')
  const [key, setKey] = useState('')
  const [address, setAddress] = useState('')
  const preset = presets.find((one) => one.name === name)
  const { busy, refusal, form } = useAction(
    () =>
      request<{ id: string }>('POST', '/v1/catalog/providers', {
        body: {
          preset: name,
          ...(key === '' ? {} : { api_key: key }),
          ...(address === '' ? {} : { base_url: address }),
        },
      }),
    made,
  )
  return (
    <form class="form" {...form}>
      <RequiredNote />
      <div class="pair">
        <SelectField
          label="Service"
          value={name}
          set={setName}
          options={presets.map((one) => [one.name, one.title] as const)}
        />
        <TextField
          label="API key"
          type="password"
          autocomplete="new-password"
          value={key}
          set={setKey}
          required={preset?.key_needed !== false}
        />
      </div>
      {preset?.address_needed != null && (
        <TextField label="Address" hint={preset.address_needed} value={address} set={setAddress} required mono />
      )}
      {preset !== undefined && <p class="small quiet">{presetNeeds(preset)}</p>}
      {refusal !== null && <ErrorNote refusal={refusal} />}
      <div class="row">
        <button type="submit" class="primary" disabled={busy}>
          {busy ? 'Adding…' : 'Add and try it'}
        </button>
        <a href={href('/catalog', { kind: 'providers', open: 'new' })}>Another service, or more settings</a>
      </div>
    </form>
  )
}
