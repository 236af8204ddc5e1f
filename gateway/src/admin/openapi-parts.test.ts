import { expect, it } from 'vitest'
import { uiPaths } from '../config/ui-config.ts'
import { openApiParts } from './openapi-parts.ts'

const paths = openApiParts.flatMap((part) => Object.keys(part.paths))

it.each(paths)('%s is served on ui gateways', (path) => {
  expect(uiPaths.some((prefix) => path === prefix || path.startsWith(`${prefix}/`))).toBe(true)
})

it('documents every path once, and every schema that it refers to', () => {
  expect(new Set(paths).size).toBe(paths.length)
  const known = new Set([
    'Error',
    'Problem',
    ...openApiParts.flatMap(({ schemas = {} }) => Object.keys(schemas)),
  ])
  const used = JSON.stringify(openApiParts).matchAll(/"#\/components\/schemas\/([^"]+)"/g)
  expect([...used].map(([, name = '']) => name).filter((name) => !known.has(name))).toEqual([])
})
