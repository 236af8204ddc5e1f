import { expect, it } from 'vitest'
import { formatIssue, loadConfigText } from '../load/load.ts'
import { configSchema } from '../schema.ts'

function issuesOf(config: object): string[] {
  const text = JSON.stringify(config)
  const result = loadConfigText({ text, file: 'f', env: {}, schema: configSchema, checks: [] })
  return result.kind === 'issues' ? result.issues.map(formatIssue) : []
}

it.each([
  [
    { routes: [{ backends: [{ aws: {} }, { weight: 1 }] }] },
    ['aws is not supported: use host', 'exactly one of'],
  ],
  [
    { routes: [{ backends: [{ service: { name: 'a', port: 1 } }] }], services: [] },
    ['service is not supported: use host', 'services is not supported'],
  ],
])('an unsupported key in %j is reported once, without mistakes that follow from it', (config, expected) => {
  const issues = issuesOf(config)
  expect(issues).toHaveLength(expected.length)
  for (const [index, text] of expected.entries()) expect(issues[index]).toContain(text)
})
