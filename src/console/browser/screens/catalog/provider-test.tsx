/** Asks a provider for its models, a short answer and a short stream, and shows what works. */
import { useState } from 'preact/hooks'
import { request } from '../../api/request.ts'
import { humanize } from '../../formats.ts'
import { Dialog } from '../../parts/frame/dialog.tsx'
import { Show, useLoaded } from '../../parts/loaded.tsx'
import { Facts } from '../../parts/small.tsx'
import { hasPermission } from '../../session.ts'
import type { ListedRecord } from './records.tsx'

interface Trial {
  steps: { step: string; ok: boolean | null; message: string }[]
}

export function ProviderTest({ provider, name }: { provider: ListedRecord; name: string }) {
  const [open, setOpen] = useState(false)
  if (!hasPermission('catalog:write')) return null
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Test
      </button>
      {open && <Tested provider={provider} name={name} close={() => setOpen(false)} />}
    </>
  )
}

const Tested = ({ provider, name, close }: { provider: ListedRecord; name: string; close(): void }) => (
  <Dialog title={`Test ${name}`} broad close={close}>
    <ProviderTrial id={provider.id} />
    <div class="row end">
      <button type="button" onClick={close}>
        Close
      </button>
    </div>
  </Dialog>
)

/** The same within the provider's own dialog. */
export function ProviderTestBeside({ provider }: { provider: ListedRecord }) {
  const [asked, setAsked] = useState(false)
  if (!hasPermission('catalog:write')) return null
  if (asked) return <ProviderTrial id={provider.id} />
  return (
    <div class="row">
      <button type="button" onClick={() => setAsked(true)}>
        Test
      </button>
    </div>
  )
}

/** Tries a provider and says what works; what failed can be tried again. `tested` is called after each test. */
export function ProviderTrial({ id, tested }: { id: string; tested?: () => void }) {
  const path = `/v1/catalog/providers/${encodeURIComponent(id)}/test`
  const found = useLoaded(`test ${id}`, async (signal) => {
    const trial = await request<Trial>('POST', path, { body: {}, signal })
    tested?.()
    return trial
  })
  return (
    <Show of={found} rows={3}>
      {({ steps }) => (
        <>
          <Facts facts={steps.map(({ step, ok, message }) => [`${humanize(step)} ${wordOf(ok)}`, message] as const)} />
          {steps.some(({ ok }) => ok === false) && (
            <div class="row">
              <button type="button" disabled={found.loading} onClick={found.reload}>
                {found.loading ? 'Testing…' : 'Test again'}
              </button>
            </div>
          )}
        </>
      )}
    </Show>
  )
}

const wordOf = (ok: boolean | null): string => (ok === null ? 'skipped' : ok ? 'works' : 'fails')
