import { useState } from 'preact/hooks'
import { chooseInstants, chooseRange, days, ranges, timeRange } from '../../time-range.ts'
import { Dialog } from '../frame/dialog.tsx'
import { RequiredNote, TextField } from './field.tsx'

/** The time range of everything that is shown. */
export function RangePicker() {
  const [custom, setCustom] = useState(false)
  const { name } = timeRange()
  return (
    <div class="range">
      <select
        aria-label="Time range"
        value={name}
        onChange={(event) => {
          const { value } = event.currentTarget
          if (value === 'custom') setCustom(true)
          else chooseRange(value)
        }}
      >
        {[...ranges, ...days].map(([value, label]) => (
          <option value={value} key={value}>
            {label}
          </option>
        ))}
        <option value="custom">Custom range</option>
      </select>
      {custom && <CustomRange close={() => setCustom(false)} />}
    </div>
  )
}

const local = (at: number): string => {
  const date = new Date(at)
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

function CustomRange({ close }: { close(): void }) {
  const now = timeRange()
  const [since, setSince] = useState(local(Date.now() - now.seconds * 1000))
  const [until, setUntil] = useState('')
  const wrong = since === '' || (until !== '' && until <= since)
  return (
    <Dialog title="Time range" close={close}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          if (wrong) return
          chooseInstants(new Date(since).toISOString(), until === '' ? null : new Date(until).toISOString())
          close()
        }}
      >
        <RequiredNote />
        <div class="pair">
          <TextField label="From" type="datetime-local" value={since} set={setSince} required />
          <TextField label="To" type="datetime-local" value={until} set={setUntil} hint="Empty: until now" />
        </div>
        <div class="row end">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={wrong}>
            Show
          </button>
        </div>
      </form>
    </Dialog>
  )
}
