import { expect, it } from 'vitest'
import { preferredFormat } from './accepted-format.ts'

const latest = { kind: 'openmetrics', version: '1.0.0' }
const text = { kind: 'text' }

it.each([
  ['', text],
  ['*/*', text],
  ['application/json', text],
  ['application/openmetrics-text', latest],
  ['Application/OpenMetrics-Text; Version="1.0.0" ; charset=utf-8', latest],
  ['application/openmetrics-text;version=0.0.1', { kind: 'openmetrics', version: '0.0.1' }],
  ['application/openmetrics-text;version=9', text],
  [
    'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;q=0.5',
    { kind: 'protobuf' },
  ],
  ['application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text', text],
  ['application/vnd.google.protobuf', text],
  ['text/plain;q=0.5,application/openmetrics-text;q=0.4', text],
  ['application/openmetrics-text;q=0', text],
  ['application/openmetrics-text;q=high', text],
  [
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1',
    latest,
  ],
  [`${'a/b,'.repeat(50)}application/openmetrics-text`, text],
  [`application/openmetrics-text;x=${'a'.repeat(5000)}`, text],
])('the format of %j is selected by weight', (accept, format) => {
  expect(preferredFormat(accept)).toEqual(format)
})
