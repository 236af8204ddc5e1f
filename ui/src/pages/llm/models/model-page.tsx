import { FlaskConical } from 'lucide-react'
import { useState } from 'react'
import { useParams } from 'wouter'
import { Button } from '../../../components/action/button.tsx'
import { isObject } from '../../../schema-form/model/value.ts'
import { ResourceEditor } from '../../resources/resource-editor.tsx'
import { ModelBasics } from './model-basics.tsx'
import { TestCall } from './test-call.tsx'

/** Creates or edits a model: name, provider and credential first, everything else in the form of the schema. */
export default function ModelPage() {
  const { id = '' } = useParams()
  const [tested, setTested] = useState<string>()
  return (
    <>
      <ResourceEditor
        kind="llm.model"
        id={id === 'new' ? undefined : id}
        noun="model"
        about="A name that clients request, and the provider that serves it."
        path="/llm/models"
        initial={{ name: '', provider: 'openai', params: {} }}
        hidden={['name', 'provider', 'visibility']}
        before={({ form, schema, readOnly }) => (
          <ModelBasics form={form} schema={schema} readOnly={readOnly} />
        )}
        actions={({ value }) => {
          const name = isObject(value) ? value['name'] : undefined
          return (
            typeof name === 'string' && (
              <Button icon={FlaskConical} onClick={() => setTested(name)}>
                Test
              </Button>
            )
          )
        }}
      />
      {tested !== undefined && <TestCall model={tested} onClose={() => setTested(undefined)} />}
    </>
  )
}
