import { describe, expect, it } from 'vitest'
import { check } from '../../schema/check.ts'
import { checkGuardrails, type GuardrailsConfig, guardrailsSchema, streamingModeOf } from './config.ts'

const host = { target: { host: 'guard.test:8000' } }

function schemaIssues(config: unknown): string[] {
  const checked = check(guardrailsSchema, config)
  return checked.kind === 'mistakes' ? checked.mistakes.map(({ path }) => path.join('.')) : []
}

function issues(config: GuardrailsConfig): string[] {
  const found: string[] = []
  checkGuardrails(config, [], (path, message) => found.push(`${path.join('.')}: ${message}`))
  return found
}

describe('guardrails of the configuration', () => {
  it.each([
    [{}],
    [{ request: [], response: [], streaming: 'Enabled' }],
    [{ request: [{ webhook: { ...host, failureMode: 'FailOpen', action: 'audit' } }] }],
    [{ response: [{ name: 'pii', regex: { rules: [{ builtin: 'ssn' }] }, rejection: { status: 400 } }] }],
  ])('may be %j', (config) => expect(schemaIssues(config)).toEqual([]))

  it.each([
    [{ request: [{}] }],
    [{ request: [{ webhook: host, regex: { rules: [{ builtin: 'ssn' }] } }] }],
    [{ request: [{ webhook: { ...host, timeout: '1s' } }] }],
    [{ request: [{ webhook: { target: { host: 'guard.test' } } }] }],
    [{ request: [{ webhook: { target: { host: 'a:1', backend: '/b' } } }] }],
    [{ request: [{ webhook: { ...host, action: 'mask' } }] }],
    [{ request: [{ regex: { rules: [] } }] }],
    [{ request: [{ regex: { rules: [{ builtin: 'ssn', pattern: 'x' }] } }] }],
    [{ streaming: 'sometimes' }],
  ])('may not be %j', (config) => expect(schemaIssues(config)).toHaveLength(1))

  it('must not use a name twice in a phase', () => {
    const webhook = host
    expect(
      issues({
        request: [
          { name: 'a', webhook },
          { name: 'a', webhook, rejection: { body: 'no', headers: { set: { host: 'x' } } } },
        ],
        response: [{ name: 'a', webhook, rejection: { headers: { set: { 'x-why': 'policy' } } } }],
      }),
    ).toEqual([
      'request.1.rejection.headers.set.host: host is made anew for each message',
      'request.1.name: another guard of this phase is named "a"',
    ])
  })

  it('know the words of others for how streams are checked', () => {
    const modes = (['Enabled', 'Disabled', 'buffered', undefined] as const).map((streaming) =>
      streamingModeOf({ streaming }),
    )
    expect(modes).toEqual(['windowed', 'disabled', 'buffered', undefined])
  })
})
