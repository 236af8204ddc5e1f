import { expect, it } from 'vitest'
import { imageOf } from './image.ts'

it.each([
  ['tollgate:1', undefined, 'tollgate:1'],
  ['ghcr.io/a/tollgate:1', { tag: '2' }, 'ghcr.io/a/tollgate:2'],
  ['ghcr.io/a/tollgate:1', { registry: 'mirror:5000' }, 'mirror:5000/a/tollgate:1'],
  ['a/tollgate:1', { registry: 'mirror:5000' }, 'mirror:5000/a/tollgate:1'],
  ['localhost/tollgate', { repository: 'other' }, 'localhost/other'],
  ['ghcr.io/a/tollgate@sha256:1', { pullPolicy: 'Always' }, 'ghcr.io/a/tollgate@sha256:1'],
  ['ghcr.io/a/tollgate@sha256:1', { tag: '2' }, 'ghcr.io/a/tollgate:2'],
  ['ghcr.io/a/tollgate:1', { digest: 'sha256:2' }, 'ghcr.io/a/tollgate@sha256:2'],
  ['mirror:5000/tollgate', { tag: '3' }, 'mirror:5000/tollgate:3'],
] as const)('replaces parts of %s by %j', (reference, image, expected) => {
  expect(imageOf(reference, image)).toBe(expected)
})
