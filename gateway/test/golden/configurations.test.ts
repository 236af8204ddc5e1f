import { describe, expect, it } from 'vitest'
import { addCustomFunctions } from '../../src/config/load/custom-functions.ts'
import { formatChecks } from '../../src/config/load/formats.ts'
import { formatIssue, loadConfigText } from '../../src/config/load/load.ts'
import { checkConfig, configSchema } from '../../src/config/schema.ts'
import { environmentOf, readConfigurations } from '../support/configurations.ts'

// Configurations in the shapes of users of agentgateway. `e2e/configurations.test.ts` runs the main ones.

const configurations = readConfigurations()

describe('a configuration in the shape of agentgateway', () => {
  it.each(configurations)('loads: $name', ({ text }) => {
    const env = environmentOf(text, { PORT: '8080', UPSTREAM: '8081' })
    const source = {
      text,
      file: 'c.yaml',
      env,
      schema: configSchema,
      formats: formatChecks,
      prepare: addCustomFunctions,
    }
    const result = loadConfigText({ ...source, checks: [checkConfig] })
    expect(result.kind === 'issues' ? result.issues.map(formatIssue) : []).toEqual([])
  })

  it('has a name of its own', () => {
    const names = configurations.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(names.length).toBeGreaterThanOrEqual(150)
  })
})
