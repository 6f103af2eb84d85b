/** The members of the two image families that are known here: settings with words or numbers of a fixed list. */
import type { MemberTable } from '../member-table.ts'

const settings = {
  model: { text: 'none' },
  prompt: { text: 'user' },
  n: { text: 'none here', role: 'choices' },
  stream: { text: 'none', role: 'stream' },
  partial_images: { text: 'none here' },
  size: { text: 'none here' },
  quality: { text: 'none here' },
  background: { text: 'none here' },
  output_format: { text: 'none here' },
  output_compression: { text: 'none here' },
  response_format: { text: 'none here' },
  user: { text: 'none here' },
} as const satisfies MemberTable

export const imageMembers = {
  ...settings,
  moderation: { text: 'none here' },
  style: { text: 'none here' },
} as const satisfies MemberTable

/** The files of a form for edits. */
export const imageFiles = ['image', 'image[]', 'mask'] as const

/** Fields of its form. */
export const imageEditMembers = {
  ...settings,
  image: { text: 'none here' },
  'image[]': { text: 'none here' },
  mask: { text: 'none here' },
  input_fidelity: { text: 'none here' },
} as const satisfies MemberTable
