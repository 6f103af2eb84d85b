/** The state of a sink in words, and a test event that is sent to its receiver. */
import { useState } from 'preact/hooks'
import { request } from '../../api/request.ts'
import { ago, humanize } from '../../formats.ts'
import { Dialog } from '../../parts/frame/dialog.tsx'
import { Show, useLoaded } from '../../parts/loaded.tsx'
import { Facts } from '../../parts/small.tsx'
import { hasPermission } from '../../session.ts'
import type { ListedRecord } from './records.tsx'

/** The receiver's last refusal stands under a state that is not well. */
export function SinkState({ record: { state, error } }: { record: ListedRecord }) {
  return (
    <>
      {humanize(String(state))}
      {typeof error === 'string' && <p class="quiet">{error}</p>}
    </>
  )
}

interface Trial {
  ok: boolean
  event_id: string
  error: string | null
}

export function SinkTest({ sink, name }: { sink: ListedRecord; name: string }) {
  const [open, setOpen] = useState(false)
  if (!hasPermission('members:write')) return null
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Test
      </button>
      {open && <Tested sink={sink} name={name} close={() => setOpen(false)} />}
    </>
  )
}

function Tested({ sink, name, close }: { sink: ListedRecord; name: string; close(): void }) {
  const path = `/v1/sinks/${encodeURIComponent(sink.id)}/test`
  const found = useLoaded(`test ${sink.id}`, (signal) => request<Trial>('POST', path, { body: {}, signal }))
  const { lost, delivered_at } = sink
  return (
    <Dialog title={`Test ${name}`} broad close={close}>
      <Show of={found} rows={2}>
        {({ ok, event_id, error }) => (
          <Facts
            facts={[
              ['Test event', ok ? `Taken: look for ${event_id}` : `Not taken: ${error ?? ''}`],
              ['Last delivery', typeof delivered_at === 'string' ? ago(delivered_at) : 'None yet'],
              typeof lost === 'number' && lost > 0 ? ['Removed by retention before it had them', String(lost)] : null,
            ]}
          />
        )}
      </Show>
      <div class="row end">
        <button type="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  )
}
