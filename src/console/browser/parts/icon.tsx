/** Line drawings of 16 by 16; beside a word always, so hidden from those who listen. */

const drawings = {
  overview: 'M2 13V8M6 13V3M10 13V6M14 13V9',
  traffic: 'M1.5 8h3l2-5 3 10 2-5h3',
  sessions: 'M2 3h12v8H8.4L5.4 13.8V11H2zM5 7h.01M8 7h.01M11 7h.01',
  tokens: 'M10.5 1.8a3.7 3.7 0 1 1-3.3 5.4L1.8 12.6v1.6h2.4v-1.6h1.6V11l1.9-1.9M11.4 4.6h.01',
  escalations: 'M8 1.8l6.4 11.6H1.6zM8 6.4v3.2M8 11.6h.01',
  alerts: 'M8 1.8a4.2 4.2 0 0 1 4.2 4.2v3.2l1.4 2.4H2.4l1.4-2.4V6A4.2 4.2 0 0 1 8 1.8zM6.4 13.8h3.2',
  policies: 'M8 1.6l5.4 2v4c0 3.4-2.3 5.6-5.4 6.8-3.1-1.2-5.4-3.4-5.4-6.8v-4zM5.6 8l1.7 1.7 3.1-3.3',
  spend:
    'M8 1.6v12.8M11.2 4.4C10.6 3.5 9.4 3.2 8 3.2c-1.8 0-3.2.8-3.2 2.3 0 3.2 6.6 1.5 6.6 4.9 0 1.5-1.5 2.4-3.4 2.4-1.6 0-2.9-.5-3.5-1.6',
  reports: 'M3.4 1.8h6.2l3 3v9.4H3.4zM5.8 7.4h4.4M5.8 10.4h4.4',
  catalog: 'M2 3.2h12v3.2H2zM2 9.6h12v3.2H2zM4.4 4.8h.01M4.4 11.2h.01',
  connections: 'M6.4 9.6l3.2-3.2M7 4.6l1.8-1.8a3 3 0 0 1 4.4 4.4L11.4 9M9 11.4l-1.8 1.8a3 3 0 0 1-4.4-4.4L4.6 7',
  applications: 'M2.4 2.4h4.4v4.4H2.4zM9.2 2.4h4.4v4.4H9.2zM2.4 9.2h4.4v4.4H2.4zM9.2 9.2h4.4v4.4H9.2z',
  people:
    'M5.8 7.6a2.6 2.6 0 1 0 0-5.2 2.6 2.6 0 0 0 0 5.2zM1.4 13.6c.2-2.6 2-4 4.4-4s4.2 1.4 4.4 4M10.6 7.4a2.3 2.3 0 0 0 .3-4.5M12 9.8c1.6.5 2.5 1.8 2.6 3.8',
  settings:
    'M2 4.6h7M12.4 4.6H14M2 11.4h1.6M7 11.4h7M10.7 6.3a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4zM5.3 13.1a1.7 1.7 0 1 0 0-3.4 1.7 1.7 0 0 0 0 3.4z',
  allow: 'M3 8.6l3.2 3.2L13 4.6',
  block: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM3.7 3.7l8.6 8.6',
  deny: 'M5 1.8h6L14.2 5v6L11 14.2H5L1.8 11V5zM5.6 5.6l4.8 4.8M10.4 5.6l-4.8 4.8',
  redact: 'M1.6 5.4h12.8v5.2H1.6zM4 8h8',
  rewrite: 'M2.4 13.6l.6-3L11 2.6l2.4 2.4-8 8zM9.4 4.2l2.4 2.4',
  escalate: 'M8 13.6V2.6M3.6 7L8 2.6 12.4 7',
  pending: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM8 4.6V8l2.4 1.6',
  rate_limit: 'M2.2 12a6.2 6.2 0 1 1 11.6 0M8 10.4l3-4.2',
  error: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8zM8 4.8v3.8M8 11.2h.01',
  search: 'M7 2.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 0 0 0-9.6zM10.4 10.4l3.4 3.4',
  menu: 'M2 4h12M2 8h12M2 12h12',
  close: 'M3.6 3.6l8.8 8.8M12.4 3.6l-8.8 8.8',
  copy: 'M5.4 5.4h8v8h-8zM10.6 5.2V2.6h-8v8h2.6',
  plus: 'M8 2.6v10.8M2.6 8h10.8',
  theme: 'M8 1.8a6.2 6.2 0 1 0 0 12.4zM8 1.8a6.2 6.2 0 0 1 0 12.4',
  handle: 'M5.6 3.2h.01M5.6 8h.01M5.6 12.8h.01M10.4 3.2h.01M10.4 8h.01M10.4 12.8h.01',
  up: 'M3.6 10L8 5.6l4.4 4.4',
  down: 'M3.6 6L8 10.4 12.4 6',
  back: 'M10 3.6L5.6 8l4.4 4.4',
  pause: 'M5 3v10M11 3v10',
  play: 'M4.4 2.8l8 5.2-8 5.2z',
} as const

export type IconName = keyof typeof drawings

export const Icon = ({ name }: { name: IconName }) => (
  <svg
    width="16"
    height="16"
    viewBox="0 0 16 16"
    fill="none"
    stroke="currentColor"
    stroke-width="1.5"
    aria-hidden="true"
  >
    <path d={drawings[name]} stroke-linecap="round" stroke-linejoin="round" />
  </svg>
)
