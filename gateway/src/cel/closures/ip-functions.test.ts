import { describe, expect, it } from 'vitest'
import { compileCel } from '../cel.ts'
import { CelEvaluationError } from '../failure.ts'

function evaluate(source: string, address = '10.1.2.3'): unknown {
  const compiled = compileCel(source, new Set(['source']))
  if (compiled.kind === 'issue') throw new Error(compiled.message)
  return compiled.program.evaluate({ source: { address } })
}

/** `type()` is one of the library's own, which the rest of the expression goes to with it. */
const engines = [
  ['closures', (source: string) => source],
  ['library', (source: string) => `type(1) == int ? (${source}) : (${source})`],
] as const

describe.each(engines)('addresses in the %s', (_, written) => {
  it.each([
    ['cidr("10.0.0.0/8").containsIP(source.address)', true],
    ['cidr("10.1.2.0/31").containsIP("10.1.2.2")', false],
    ['cidr("10.0.0.0/8").containsIP(ip("::ffff:10.9.9.9"))', true],
    ['cidr("2001:db8::/32").containsIP("2001:DB8:0:0::1")', true],
    ['cidr("2001:db8::/32").containsIP(source.address)', false],
    ['["10.0.0.0/8", "fd00::/8"].exists(range, cidr(range).containsIP(source.address))', true],
    ['cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16")', true],
    ['cidr("10.1.0.0/16").containsCIDR(cidr("10.0.0.0/8"))', false],
    ['cidr("10.1.2.3/9").masked()', '10.0.0.0/9'],
    ['cidr("2001:db8:ffff::1/33").masked()', '2001:db8:8000::/33'],
    ['cidr("10.1.2.3/9").ip()', '10.1.2.3'],
    ['cidr("fd00::/7").prefixLength()', 7],
    ['ip("2001:DB8:0:0:0::1")', '2001:db8::1'],
    ['ip("::ffff:10.0.0.1") == ip("10.0.0.1")', true],
    ['ip("::1").family()', 6],
    ['ip(source.address).family()', 4],
    ['ip("127.8.0.1").isLoopback() && ip("::1").isLoopback()', true],
    ['ip("0.0.0.0").isUnspecified()', true],
    ['ip("169.254.169.254").isLinkLocalUnicast()', true],
    ['ip("ff02::1").isLinkLocalMulticast()', true],
    ['ip(source.address).isPrivate()', true],
    ['isIP("10.0.0.1") && !isIP("10.0.0.256") && !isIP("10.0.0.0/8")', true],
    ['isCIDR("10.0.0.0/8") && !isCIDR("10.0.0.0") && !isCIDR("10.0.0.0/33")', true],
  ])('%s is %j', (source, expected) => {
    expect(evaluate(written(source))).toBe(expected)
  })

  it.each([
    'cidr("10.0.0.0/33").containsIP("10.0.0.1")',
    'cidr("10.0.0.0/8").containsIP("here")',
    'ip("fe80::1%eth0")',
  ])('%s cannot be evaluated', (source) => {
    expect(() => evaluate(written(source))).toThrow(CelEvaluationError)
  })
})

describe('address functions', () => {
  it('are compiled to closures', () => {
    const compiled = compileCel('cidr("10.0.0.0/8").containsIP(source.address)', new Set(['source']))
    expect(compiled.kind === 'program' && compiled.program.engine).toBe('closures')
  })

  it('are validated by name and number of arguments', () => {
    const messageOf = (source: string) => {
      const compiled = compileCel(source, new Set(['source']))
      return compiled.kind === 'issue' ? compiled.message : undefined
    }
    expect(messageOf('cidr("10.0.0.0/8").containsIp(source.address)')).toContain('did you mean "containsIP"?')
    expect(messageOf('cidr("10.0.0.0/8").containsIP()')).toContain('takes 1 argument')
  })
})
