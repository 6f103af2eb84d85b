/** Dialogs: the browser's own element keeps the focus inside and gives it back; Escape closes. */
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { Refusal } from '../api/request.ts'
import { asRefusal, Fault } from './loaded.tsx'

interface DialogProps {
  title: string
  broad?: boolean
  close(): void
  children: ComponentChildren
}

export function Dialog({ title, broad = false, close, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => element.current?.showModal(), [])
  return (
    <dialog ref={element} class={broad ? 'broad' : ''} aria-labelledby={id} onClose={close}>
      <div>
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  )
}

/** What a form or a dialog does when it is sent: once at a time, with what was refused kept to be shown. */
export function useAction<Result>(
  work: () => Promise<Result>,
  done: (result: Result) => void,
): { run(): void; busy: boolean; refusal: Refusal | null } {
  const [busy, setBusy] = useState(false)
  const [refusal, setRefusal] = useState<Refusal | null>(null)
  const run = async () => {
    if (busy) return
    setBusy(true)
    setRefusal(null)
    try {
      done(await work())
    } catch (error) {
      setRefusal(asRefusal(error))
    } finally {
      setBusy(false)
    }
  }
  return { run: () => void run(), busy, refusal }
}

interface ConfirmProps {
  title: string
  /** What will happen, in words. */
  children: ComponentChildren
  /** Where given, it must be typed first: for what cannot be undone. */
  name?: string
  action: string
  /** Whether everything else that is needed has been filled in. */
  ready?: boolean
  close(): void
  work(): Promise<void>
}

export function Confirm({ title, children, name, action, ready = true, close, work }: ConfirmProps) {
  const [typed, setTyped] = useState('')
  const { run, busy, refusal } = useAction(work, close)
  const id = useId()
  const sure = ready && (name === undefined || typed.trim() === name)
  return (
    <Dialog title={title} close={close}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          if (sure) run()
        }}
      >
        {children}
        {name !== undefined && (
          <div class="field">
            <label for={id}>
              Type <strong class="wrap">{name}</strong> to confirm
            </label>
            <input
              id={id}
              value={typed}
              autocomplete="off"
              spellcheck={false}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          </div>
        )}
        {refusal !== null && <Fault refusal={refusal} />}
        <div class="row end">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="danger primary" disabled={!sure || busy}>
            {busy ? 'Working…' : action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
