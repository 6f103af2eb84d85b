/** Measures an alert now, and sends a notice to a channel now. */
import { useState } from 'preact/hooks'
import { request } from '../../api/request.ts'
import { number } from '../../formats.ts'
import { Dialog } from '../../parts/frame/dialog.tsx'
import { Show, useLoaded } from '../../parts/loaded.tsx'
import { Table } from '../../parts/table.tsx'
import { showInvisible } from '../../parts/user-text.tsx'
import { hasPermission } from '../../session.ts'
import type { ListedRecord } from '../catalog/records.tsx'

interface Found {
  known: boolean
  measured: { subject: string; value: number; reached: number[]; about: string }[]
}

export function AlertTest({ alert, name }: { alert: ListedRecord; name: string }) {
  const [open, setOpen] = useState(false)
  if (!hasPermission('catalog:write')) return null
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Test
      </button>
      {open && <Measured id={alert.id} name={name} close={() => setOpen(false)} />}
    </>
  )
}

function Measured({ id, name, close }: { id: string; name: string; close(): void }) {
  const found = useLoaded(`alert ${id}`, (signal) =>
    request<Found>('POST', `/v1/alerts/${id}/test`, { body: {}, signal }),
  )
  return (
    <Dialog title={`Test ${name}`} broad close={close}>
      <Show of={found} rows={3}>
        {({ known, measured }) => (
          <Table
            label="What it measures now"
            rows={measured}
            keyOf={({ subject }) => subject}
            columns={[
              {
                title: 'About',
                cell: ({ about }) => showInvisible(about),
              },
              { title: 'Value', right: true, cell: ({ value }) => number(Math.round(value * 100) / 100) },
              { title: 'Fires', cell: ({ reached }) => (reached.length === 0 ? 'No' : `At ${reached.join(', ')}`) },
            ]}
            empty={<p class="quiet">{known ? 'It finds nothing now.' : 'It cannot be measured now.'}</p>}
          />
        )}
      </Show>
      <Closing close={close} />
    </Dialog>
  )
}

interface Delivered {
  delivered: boolean
  error: string | null
}

export function ChannelTest({ channel, name, done }: { channel: ListedRecord; name: string; done(): void }) {
  const [open, setOpen] = useState(false)
  if (!hasPermission('catalog:write')) return null
  const close = () => {
    setOpen(false)
    done()
  }
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Test
      </button>
      {open && <Sent id={channel.id} name={name} close={close} />}
    </>
  )
}

function Sent({ id, name, close }: { id: string; name: string; close(): void }) {
  const found = useLoaded(`channel ${id}`, (signal) =>
    request<Delivered>('POST', `/v1/alert-channels/${id}/test`, { body: {}, signal }),
  )
  return (
    <Dialog title={`Test ${name}`} close={close}>
      <Show of={found} rows={1}>
        {({ delivered, error }) => <p>{delivered ? 'The notice arrived.' : `The notice did not arrive: ${error}.`}</p>}
      </Show>
      <Closing close={close} />
    </Dialog>
  )
}

const Closing = ({ close }: { close(): void }) => (
  <div class="row end">
    <button type="button" onClick={close}>
      Close
    </button>
  </div>
)
