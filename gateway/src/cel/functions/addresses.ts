import { noOverload } from '../closures/values.ts'
import { Failure } from '../failure.ts'
import { spendWork } from '../work-budget.ts'
import type { CelFunction } from './function.ts'

/** Query parameters of `request.pathAndQuery`, `request.uri` and other addresses. */
export const addressFunctions: readonly CelFunction[] = [
  {
    name: 'query',
    isMethod: true,
    arity: 2,
    apply(address, name) {
      if (typeof address !== 'string' || typeof name !== 'string') return noOverload('query', address, name)
      const values = parse(address).parameters.getAll(name)
      return values.length === 0 ? new Failure(`no such key: ${name}`) : values
    },
  },
  edit('addQuery', (parameters, name, value) => parameters.append(name, value)),
  edit('setQuery', (parameters, name, value) => {
    parameters.delete(name)
    parameters.append(name, value)
  }),
]

/** Work units per character: a parameter may have one. */
const costOfCharacter = 500

function parse(address: string): { path: string; parameters: URLSearchParams } {
  spendWork(address.length * costOfCharacter)
  const start = address.indexOf('?')
  if (start < 0) return { path: address, parameters: new URLSearchParams() }
  // `URLSearchParams` ignores a leading question mark, which is part of the query here.
  const parameters = new URLSearchParams(`&${address.slice(start + 1)}`)
  return { path: address.slice(0, start), parameters }
}

function edit(
  name: string,
  change: (parameters: URLSearchParams, name: string, value: string) => void,
): CelFunction {
  return {
    name,
    isMethod: true,
    arity: 3,
    apply(address, parameter, value) {
      if (typeof address !== 'string' || typeof parameter !== 'string' || typeof value !== 'string')
        return noOverload(name, address, parameter, value)
      const { path, parameters } = parse(address)
      spendWork((parameter.length + value.length) * costOfCharacter)
      change(parameters, parameter, value)
      return `${path}?${parameters}`
    },
  }
}
