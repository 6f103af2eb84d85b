/** Short words about what was just done; they go by themselves, and are read out without taking the focus. */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'

interface Said {
  id: number
  content: ComponentChildren
}

const said = signal<readonly Said[]>([])
let lastId = 0
const shownMilliseconds = 6000

export function showToast(content: ComponentChildren): void {
  lastId += 1
  const id = lastId
  said.value = [...said.value.slice(-2), { id, content }]
  setTimeout(() => {
    said.value = said.value.filter((one) => one.id !== id)
  }, shownMilliseconds)
}

export const Toasts = () => (
  <div class="toasts" role="status">
    {said.value.map(({ id, content }) => (
      <div class="toast" key={id}>
        {content}
      </div>
    ))}
  </div>
)
