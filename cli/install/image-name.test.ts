import { expect, test } from 'bun:test'
import { requireImageName } from './image-name.ts'

const digest = `sha256:${'0f'.repeat(32)}`

test.each([
  'gatehouse',
  'gatehouse:0.2.0',
  'localhost:5000/a/b__c-d.e:V1_x',
  'Registry.example/team/image',
  `a@${digest}`,
  `ghcr.io/a/b:1@${digest}`,
  '[::1]:5000/a',
])('%s is the name of an image', (name) => {
  expect(() => requireImageName(name)).not.toThrow()
})

test.each([
  '',
  '-x',
  'A_B',
  'a/-b',
  'a:',
  'a:-1',
  'a//b',
  'a___b',
  'a@sha256:00',
  'a b',
  'a"b',
  'https://a/b',
  `${'a'.repeat(256)}`,
  `a:${'b'.repeat(129)}`,
])('"%s" is none', (name) => {
  expect(() => requireImageName(name)).toThrow('--image is no name of an image')
})
