// The same three replicas as a scale set with flexible orchestration, over three zones. Its VMs get names of their own,
// so the template makes them one by one into the set: a cluster is made of names that are known before it starts.

@description('Where cloud-init fetches the Debian package: any address that the VMs reach, as a blob of your own.')
param packageUri string

@description('The SHA-256 of the package, in hexadecimal.')
@minLength(64)
@maxLength(64)
param packageSha256 string

@description('The public key with which you log in.')
param sshPublicKey string

@description('The subnet for the VMs; its security group must keep port 7420 to them alone.')
param subnetId string

@description('Free addresses of that subnet, one for each VM.')
@minLength(3)
@maxLength(3)
param addresses array

param location string = resourceGroup().location
param vmSize string = 'Standard_B2s'
param userName string = 'operator'

var count = 3
var names = [for i in range(0, count): 'db-${i}']
var replicas = join(map(range(0, count), i => '${names[i]} = "${addresses[i]}:7420"'), ', ')
var template = loadTextContent('cloud-init.yaml')
var cloudInit = replace(replace(replace(template, '@@REPLICAS@@', replicas), '@@PACKAGE@@', packageUri), '@@SHA256@@', packageSha256)

// Without a profile: it makes no VMs by itself.
resource scaleSet 'Microsoft.Compute/virtualMachineScaleSets@2024-03-01' = {
  name: 'db'
  location: location
  zones: ['1', '2', '3']
  properties: {
    orchestrationMode: 'Flexible'
    platformFaultDomainCount: 1
  }
}

resource interfaces 'Microsoft.Network/networkInterfaces@2023-11-01' = [for i in range(0, count): {
  name: names[i]
  location: location
  properties: {
    ipConfigurations: [
      {
        name: 'db'
        properties: {
          privateIPAllocationMethod: 'Static'
          privateIPAddress: addresses[i]
          subnet: {
            id: subnetId
          }
        }
      }
    ]
  }
}]

resource machines 'Microsoft.Compute/virtualMachines@2024-03-01' = [for i in range(0, count): {
  name: names[i]
  location: location
  zones: ['${i + 1}']
  properties: {
    virtualMachineScaleSet: {
      id: scaleSet.id
    }
    hardwareProfile: {
      vmSize: vmSize
    }
    // Lets an event announce that the VM is deleted, so that its replica leaves the cluster in order.
    scheduledEventsProfile: {
      terminateNotificationProfile: {
        enable: true
        notBeforeTimeout: 'PT10M'
      }
    }
    osProfile: {
      computerName: names[i]
      adminUsername: userName
      customData: base64(cloudInit)
      linuxConfiguration: {
        disablePasswordAuthentication: true
        ssh: {
          publicKeys: [
            {
              path: '/home/${userName}/.ssh/authorized_keys'
              keyData: sshPublicKey
            }
          ]
        }
      }
    }
    storageProfile: {
      imageReference: {
        publisher: 'Debian'
        offer: 'debian-12'
        sku: '12-gen2'
        version: 'latest'
      }
      osDisk: {
        createOption: 'FromImage'
        managedDisk: {
          storageAccountType: 'StandardSSD_LRS'
        }
      }
    }
    networkProfile: {
      networkInterfaces: [
        {
          id: interfaces[i].id
        }
      ]
    }
  }
}]

output machineNames array = names
