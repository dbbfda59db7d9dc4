// Three replicas in a scale set with flexible orchestration, in three zones. A cluster needs the names of its members
// before the start, so the template creates each VM with a fixed name in the set.

@description('The address of the Debian package for cloud-init, for example of a blob. The VMs must reach it.')
param packageUri string

@description('The SHA-256 of the package, in hexadecimal.')
@minLength(64)
@maxLength(64)
param packageSha256 string

@description('The public key for your login.')
param sshPublicKey string

@description('The subnet of the VMs. Its security group must open port 7420 for these VMs only.')
param subnetId string

@description('Free addresses of the subnet, one for each VM.')
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

// Without a profile, the set creates no VMs.
resource scaleSet 'Microsoft.Compute/virtualMachineScaleSets@2025-04-01' = {
  name: 'db'
  location: location
  zones: ['1', '2', '3']
  properties: {
    orchestrationMode: 'Flexible'
    platformFaultDomainCount: 1
    // Azure itself approves nothing: an event that starts before the hooks have run costs writes.
    scheduledEventsPolicy: {
      userInitiatedReboot: {
        automaticallyApprove: false
      }
      userInitiatedRedeploy: {
        automaticallyApprove: false
      }
      allInstancesDown: {
        automaticallyApprove: false
      }
    }
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
    // An event announces the deletion of the VM, so that the replica leaves the cluster in order.
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
