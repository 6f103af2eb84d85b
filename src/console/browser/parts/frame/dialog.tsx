/** Dialogs: the browser's own element keeps the focus inside and gives it back; Escape closes, unless it must stay. */
import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { mayClose, warnBeforeLeaving } from '../../address.ts'
import type { Refusal } from '../../api/request.ts'
import { asRefusal, ErrorNote } from '../loaded.tsx'
import { comparableText, showInvisible, UserText } from '../user-text.tsx'

interface DialogProps {
  title: string
  broad?: boolean
  /** Only its own buttons close it. */
  stays?: boolean
  close(): void
  children: ComponentChildren
}

export function Dialog({ title, broad = false, stays = false, close, children }: DialogProps) {
  const { element, ...held } = useModal(stays, close)
  const id = useId()
  return (
    <dialog ref={element} class={broad ? 'broad' : ''} aria-labelledby={id} {...held}>
      <div>
        <h2 id={id}>
          <UserText>{title}</UserText>
        </h2>
        {children}
      </div>
    </dialog>
  )
}

/** What is to have the focus again: where one dialog takes another's place in one drawing, it is due to the second. */
let due: Element | null = null

/** Opens a dialog over everything. One that stays is opened again where a browser insists on the second Escape. */
export function useModal(stays: boolean, close: () => void) {
  const element = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const before = due ?? document.activeElement
    element.current?.showModal()
    // The browser gives the focus back where it closes a dialog, not where one is taken away after its work: then
    // nothing has it. Who has moved it on since keeps it.
    return () => {
      due = before
      queueMicrotask(() => {
        due = null
        if (document.activeElement === document.body && before instanceof HTMLElement) before.focus()
      })
    }
  }, [])
  return {
    element,
    onCancel: (event: Event) => {
      if (stays || !mayClose(element.current)) event.preventDefault()
    },
    onClose: () => {
      if (stays || !mayClose(element.current)) element.current?.showModal()
      else close()
    },
  }
}

const unsaved = 'Your changes in this form are not saved. Leave without saving them?'

/** What a `<form>` takes so that it is sent, and so that nobody leaves it with changes without being asked. */
interface FormEvents {
  onInput(event: { currentTarget: Element }): void
  onSubmit(event: Event): void
}

interface Action {
  run(): void
  clear(): void
  busy: boolean
  refusal: Refusal | null
  form: FormEvents
}

/** What a form or a dialog does when it is sent: once at a time, with what was refused kept to be shown. */
export function useAction<Result>(work: () => Promise<Result>, done: (result: Result) => void): Action {
  const [busy, setBusy] = useState(false)
  const running = useRef(false)
  const [refusal, setRefusal] = useState<Refusal | null>(null)
  /** The changed form, and what ends the question before it is left. */
  const changed = useRef<{ form: Element; end(): void } | null>(null)
  const typedMeanwhile = useRef(false)
  const noteChange = (form: Element) => {
    typedMeanwhile.current = true
    changed.current ??= { form, end: warnBeforeLeaving(unsaved, form) }
  }
  const forgetChange = () => {
    changed.current?.end()
    changed.current = null
  }
  useLayoutEffect(() => forgetChange, [])
  const run = async () => {
    // The state comes with the next rendering, the second click of two before it.
    if (running.current) return
    running.current = true
    setBusy(true)
    setRefusal(null)
    typedMeanwhile.current = false
    try {
      const result = await work()
      const form = changed.current?.form
      forgetChange()
      done(result)
      if (typedMeanwhile.current && form !== undefined) noteChange(form)
    } catch (error) {
      const refused = asRefusal(error)
      setRefusal(refused)
      // The record is there already: leaving the form loses nothing.
      if (refused.madeId !== null) forgetChange()
    } finally {
      running.current = false
      setBusy(false)
    }
  }
  return {
    run: () => void run(),
    clear: () => setRefusal(null),
    busy,
    refusal,
    form: {
      onInput: ({ currentTarget }) => noteChange(currentTarget),
      onSubmit: (event) => {
        event.preventDefault()
        void run()
      },
    },
  }
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
  /** Instead of closing, once the work is done. */
  done?(): void
}

export function Confirm({ title, children, name, action, ready = true, close, work, done = close }: ConfirmProps) {
  const [typed, setTyped] = useState('')
  const { run, busy, refusal } = useAction(work, done)
  const id = useId()
  const sure =
    ready &&
    (name === undefined ||
      [name, showInvisible(name)].some(
        (one) => comparableText(one) !== '' && comparableText(typed) === comparableText(one),
      ))
  return (
    <Dialog title={title} stays={busy} close={close}>
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
              Type{' '}
              <strong class="wrap">
                <UserText>{name}</UserText>
              </strong>{' '}
              to confirm
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
        {refusal !== null && <ErrorNote refusal={refusal} />}
        <div class="row end">
          <button type="button" disabled={busy} onClick={close}>
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
