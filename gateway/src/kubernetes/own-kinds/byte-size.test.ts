import { expect, it } from 'vitest'
import { bytesOf } from './byte-size.ts'

it('byte sizes are numbers, or quantities with decimal and binary units', () => {
  expect([8192, '8192', '8k', '8Ki', '2Mi', '1G'].map(bytesOf)).toEqual([
    8192, 8192, 8000, 8192, 2_097_152, 1_000_000_000,
  ])
})

it('byte sizes are whole positive numbers of known units', () => {
  const wrong = ['', '0', '1.5Ki', '-1', '8ki', '8KB', '1m', ' 1', '9999999999999', '999999999999Gi']
  expect(wrong.map(bytesOf)).toEqual(wrong.map(() => undefined))
})
